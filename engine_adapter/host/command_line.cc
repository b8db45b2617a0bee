#include "engine_adapter/host/command_line.h"

#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "engine_adapter/host/config_file.h"
#include "program/program_flags.h"

ABSL_FLAG(std::string, config, "",
          "path of a JSON file of flags, such as {\"num_envs\": 64}, which the "
          "command line's win over; empty: none");

namespace tandem {
namespace {

const ProgramFlags& Flags() {
  static const ProgramFlags flags("engine_adapter/");
  return flags;
}

// The file names no other.
absl::Status SetFromFile(const std::string& path) {
  const auto flags = ReadConfigFile(path);
  if (!flags.ok()) return flags.status();
  for (const auto& [name, value] : *flags) {
    absl::CommandLineFlag* const flag = Flags().Find(name);
    if (flag == nullptr || name == FLAGS_config.Name()) {
      return Flags().Unknown(name, path, FLAGS_config.Name());
    }
    absl::Status status = ProgramFlags::Set(flag, value);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc,
                                             const char* const* argv) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  if (ProgramFlags::WantHelp(words)) return CommandLine{.help_wanted = true};
  absl::Status status = Flags().SetFromWords(words);
  if (!status.ok()) return status;
  const std::string path = absl::GetFlag(FLAGS_config);
  if (path.empty()) return CommandLine{};
  status = SetFromFile(path);
  status.Update(Flags().SetFromWords(words));
  if (!status.ok()) return status;
  return CommandLine{};
}

std::string HelpText(absl::string_view usage) { return Flags().Help(usage); }

}  // namespace tandem
