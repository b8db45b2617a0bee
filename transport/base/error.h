// Errors of set-up and broken contracts: absl::Status that carries an
// ErrorCode.
//
// Data flow: transport makes them, each boundary adds context once, a language
// binding turns the code into its own exception by the one table.
//
//   if (fd < 0) return MakeSystemError("open", path, errno);
//   return MakeError(ErrorCode::kNotReady, "no region 'demo': start ...");

#ifndef TANDEM_TRANSPORT_BASE_ERROR_H_
#define TANDEM_TRANSPORT_BASE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"

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
