// FindProgram, StartProgram: other programs that a front end starts.
//
// Data flow: a program's name -> its path -> a process with the given files.
// Ownership: the caller waits for the process. Any thread.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The first of these files that this user may execute, then the first one of
// that name in a folder of PATH; nullopt: none.
std::optional<std::string> FirstExecutable(std::vector<std::string> files,
                                           absl::string_view name);

// Returns the path of one of Tandem's programs: beside this program, or else in
// PATH, or else in `folder` of a Bazel run. kUnsupported: it is nowhere.
absl::StatusOr<std::string> FindProgram(absl::string_view name,
                                        absl::string_view folder);

// Descriptors of the process; each may be one that closes on exec.
struct ProgramFiles {
  int input = -1;
  int output = -1;
  int errors = -1;
};

// Starts words[0], a path, in a session of its own: Ctrl-C ends this program
// alone. No signal is blocked in it, and SIGPIPE has its default action. Error:
// posix_spawn's.
absl::StatusOr<pid_t> StartProgram(std::vector<std::string> words,
                                   const ProgramFiles& files);

}  // namespace tandem
