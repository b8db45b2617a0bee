// Command lines of engine servers: ProgramFlags, and a JSON file of flags.
//
// Data flow: --config's file, then argv -> absl flags. The source file that
// defines a flag reads it by absl::GetFlag.
//
//   {"task": "Ant-v5", "num_envs": 64, "services": ["agent", "scene"],
//    "stream_hz": {"camera": 10}, "task_options": {"healthy_reward": 2}}
//
//   ABSL_FLAG(std::string, task, "", "name of the task");
//   absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv);
//   if (line.ok() && line->help_wanted) std::cout << HelpText(usage);

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine_adapter/server_main.h"

namespace tandem {

struct CommandLine {
  bool help_wanted = false;  // --help or -h; other flags were not checked
};

// Sets flags as ProgramFlags::SetFromWords does, and `own`: --NAME=NUMBER or
// --NAME NUMBER. The command line overrides --config's file, a JSON object.
// kInvalidArgument also for a file that cannot be read, or is not a JSON object
// of flags.
absl::StatusOr<CommandLine> ParseCommandLine(
    int argc, const char* const* argv, absl::Span<const OwnFlag> own = {});

// Returns `usage`, then every flag that engine_adapter/ defines, with its
// default. `usage` may explain own flags.
std::string HelpText(absl::string_view usage);

}  // namespace tandem
