// Print: text for standard output, at once.
//
//   if (absl::Status s = Print("1 run\n"); !s.ok()) return Fail(s);

#ifndef TANDEM_PROGRAM_STANDARD_OUTPUT_H_
#define TANDEM_PROGRAM_STANDARD_OUTPUT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Behind what stdio still has for it. ErrorCode::kPeerGone: it is a pipe that
// nobody reads any more, and SIGPIPE is ignored; else what write(2) says, such
// as of a full disk. Blocks while a pipe is full.
absl::Status Print(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_PROGRAM_STANDARD_OUTPUT_H_
