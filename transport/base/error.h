// Errors of set-up and broken contracts: absl::Status that carries an
// ErrorCode.
//
// Data flow: transport makes them, each boundary adds context once, a language
// binding turns the code into its own exception by the one table.
//
//   if (fd < 0) return MakeSystemError("open", path, errno);
//   RETURN_IF_ERROR(CheckRegionName(name));
//   ASSIGN_OR_RETURN(const RegionLock lock, RegionLock::On(fd));

#ifndef TANDEM_TRANSPORT_BASE_ERROR_H_
#define TANDEM_TRANSPORT_BASE_ERROR_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"

// Returns the expression's absl::Status to the caller unless it is OK.
#define RETURN_IF_ERROR(...)                                         \
  do {                                                               \
    absl::Status TANDEM_UNIQUE_(status) = (__VA_ARGS__);             \
    if (!TANDEM_UNIQUE_(status).ok()) return TANDEM_UNIQUE_(status); \
  } while (false)

// Moves the value of an absl::StatusOr into `target`, a variable or the
// declaration of one; returns the status to the caller if there is no value.
#define ASSIGN_OR_RETURN(target, ...)                                       \
  auto TANDEM_UNIQUE_(result) = (__VA_ARGS__);                              \
  if (!TANDEM_UNIQUE_(result).ok()) return TANDEM_UNIQUE_(result).status(); \
  target = *std::move(TANDEM_UNIQUE_(result))

// The name with the number of its line: unique in its scope.
#define TANDEM_UNIQUE_(name) TANDEM_UNIQUE_OF_(name, __LINE__)
#define TANDEM_UNIQUE_OF_(name, line) TANDEM_JOIN_(name, line)
#define TANDEM_JOIN_(name, line) tandem_##name##_##line

namespace tandem {

// A status of the table's absl code for `code`, which it carries along.
// Never OK: kOk, a caller's mistake, becomes kInvalidArgument. The message
// becomes PrintableLines(message): what it repeats of a peer's bytes steers no
// terminal. Allocates.
absl::Status MakeError(ErrorCode code, absl::string_view message);

// kSystemCallFailed (kAccessDenied for EACCES and EPERM, kOutOfSharedMemory for
// ENOSPC) with the text of `errno_value`: what was tried, on what.
absl::Status MakeSystemError(absl::string_view call, absl::string_view subject,
                             int errno_value);

// The code that MakeError put in; for a status from elsewhere the first row of
// the table that has its absl code; kOk for OK only.
ErrorCode CodeOf(const absl::Status& status);

// The row's C++ name without its k ("PeerGone") and its meaning; "Unknown" for
// a number that the table lacks (it may come from the region).
absl::string_view NameOf(ErrorCode code);
absl::string_view MeaningOf(ErrorCode code);

// Whether the table has that number.
bool IsKnown(ErrorCode code);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_ERROR_H_
