// Command lines of engine servers: absl flags, with our own words and exit
// codes (absl::ParseCommandLine exits with 1 on a bad flag, and its --help
// leaves out the flags that servers share).
//
// Data flow: --config's file, then argv -> absl flags; whoever owns a flag
// reads it by absl::GetFlag.
//
//   ABSL_FLAG(std::string, task, "", "what to run");
//   absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv);
//   if (line.ok() && line->help_wanted) std::cout << HelpText(usage);

#ifndef TANDEM_ENGINE_ADAPTER_HOST_COMMAND_LINE_H_
#define TANDEM_ENGINE_ADAPTER_HOST_COMMAND_LINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

struct CommandLine {
  bool help_wanted = false;  // --help or -h was there; nothing else was checked
};

// Sets flags from --flag=value, --flag value, and for booleans --flag and
// --noflag; one dash does as well. Those of --config's file come first, so that
// the command line's win. kInvalidArgument for an unknown flag, a bad or
// missing value, a file that cannot be, or a word that belongs to no flag.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// `usage`, then every flag that engine_adapter/ defines, with its default.
std::string HelpText(absl::string_view usage);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_COMMAND_LINE_H_
