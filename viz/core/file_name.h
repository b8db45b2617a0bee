// NewFileName: the name of a file that a front end writes about a run.
// MakeFolder: the folder for such files.
//
//   NewFileName("demo", ".mp4")  // "demo-20261126-230405.123.mp4"

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Returns the run, the local time in milliseconds, and the ending. Of the run
// at most 100 bytes; bytes that are no ASCII letter, digit, '-' or '.' become
// '_', so a hostile name leads into no other folder.
std::string NewFileName(absl::string_view run, absl::string_view ending);

// Makes the folder, with its parents, if it is missing. kInvalidArgument, with
// the flag's name: no file can be written into it. OK for ".", the default,
// without a look: most programs write no file.
absl::Status MakeFolder(absl::string_view flag, const std::string& folder);

}  // namespace tandem
