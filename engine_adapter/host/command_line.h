// Command lines of engine servers: ProgramFlags, and a file of flags.
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

// Sets flags as ProgramFlags::SetFromWords does. Those of --config's file come
// first, so that the command line's win. kInvalidArgument for a file that
// cannot be, too.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// `usage`, then every flag that engine_adapter/ defines, with its default.
std::string HelpText(absl::string_view usage);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_COMMAND_LINE_H_
