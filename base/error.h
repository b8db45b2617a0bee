// Errors of set-up and broken contracts: an absl::Status with an ErrorCode.
//
// Data flow: the transport makes an error; each boundary adds context once; a
// language binding converts the code into its exception, by one table.
//
//   if (fd < 0) return MakeSystemError("open", path, errno);
//   TANDEM_RETURN_IF_ERROR(CheckRegionName(name));
//   TANDEM_ASSIGN_OR_RETURN(const SideLocks lock, SideLocks::On(region));

#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"

// Returns the expression's absl::Status to the caller unless it is OK.
#define TANDEM_RETURN_IF_ERROR(...)                                  \
  do {                                                               \
    absl::Status TANDEM_UNIQUE_(status) = (__VA_ARGS__);             \
    if (!TANDEM_UNIQUE_(status).ok()) return TANDEM_UNIQUE_(status); \
  } while (false)

// Moves the value of an absl::StatusOr into `target`, a variable or a
// declaration; returns the status to the caller if there is no value.
#define TANDEM_ASSIGN_OR_RETURN(target, ...)                                \
  auto TANDEM_UNIQUE_(result) = (__VA_ARGS__);                              \
  if (!TANDEM_UNIQUE_(result).ok()) return TANDEM_UNIQUE_(result).status(); \
  target = *std::move(TANDEM_UNIQUE_(result))

// The name with its line number: unique in its scope.
#define TANDEM_UNIQUE_(name) TANDEM_UNIQUE_OF_(name, __LINE__)
#define TANDEM_UNIQUE_OF_(name, line) TANDEM_JOIN_(name, line)
#define TANDEM_JOIN_(name, line) tandem_##name##_##line

namespace tandem {

// Returns a status with `code` and with the absl code of the table. Never OK:
// for kOk, a caller's mistake, the code is kInvalidArgument. The message
// becomes PrintableLines(message), so that a peer's bytes cannot control a
// terminal. Allocates.
absl::Status MakeError(ErrorCode code, absl::string_view message);

// Returns kSystemCallFailed (kAccessDenied for EACCES and EPERM,
// kOutOfSharedMemory for ENOSPC). The text has the call, its subject and the
// text of `errno_value`.
absl::Status MakeSystemError(absl::string_view call, absl::string_view subject,
                             int errno_value);

// Returns the code of MakeError. For another status, returns the first row of
// the table with its absl code; kOk only for OK.
ErrorCode CodeOf(const absl::Status& status);

// The row's C++ name without its k ("PeerGone"), and its meaning; "Unknown" for
// a number that is not in the table (it may come from the region).
absl::string_view NameOf(ErrorCode code);
absl::string_view MeaningOf(ErrorCode code);

// Whether the table has this code.
bool IsKnown(ErrorCode code);

}  // namespace tandem
