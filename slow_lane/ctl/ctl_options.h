// CtlOptions: the command line of tandemctl.
//
// Data flow: argv, environment -> ParseCtlOptions -> one command and where its
// daemon is.
//
//   absl::StatusOr<CtlOptions> options = ParseCtlOptions(words, environment);
//   std::visit([&](const auto& command) { Do(command); }, options->command);

#ifndef TANDEM_SLOW_LANE_CTL_CTL_OPTIONS_H_
#define TANDEM_SLOW_LANE_CTL_CTL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "slow_lane/runs/run_state.h"

namespace tandem::slow_lane {

struct HelpCommand {
  absl::string_view text;
};

struct SubmitCommand {
  std::string config_file;  // "-": standard input; else the rest counts
  std::string name;
  uint32_t gpus = 0;
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<uint64_t> max_steps;
  std::optional<uint64_t> max_duration_secs;
  std::optional<uint64_t> step_stride;
  std::vector<std::string> program;  // and its arguments

  bool watch = false;
};

struct ListCommand {
  std::vector<RunState> states;  // none: all
  bool json = false;
};

struct WatchCommand {
  std::string run_id;  // empty: all
  // The daemon was there, and had it, a moment ago: it was submitted just now.
  bool submitted = false;
};

// What is done to each of some runs.
struct RunsCommand {
  enum class What : uint8_t { kCancel, kPause, kResume, kDelete };
  What what = What::kCancel;
  std::vector<std::string> run_ids;  // none, of kCancel: all that go on
};

struct LogsCommand {
  enum class What : uint8_t { kStdout, kStderr, kMalformed };
  What what = What::kStdout;
  std::string run_id;
  bool follow = false;
};

struct ExportCommand {
  enum class What : uint8_t { kSteps, kEpisodes, kLifecycle };
  What what = What::kSteps;
  std::string run_id;
  std::string out;  // empty: standard output
};

struct HealthCommand {};

struct CtlOptions {
  std::string daemon;
  std::string daemon_source;  // who said so, such as "--daemon"
  std::string token_file;     // of --token_file; empty: not given
  std::variant<HelpCommand, SubmitCommand, ListCommand, WatchCommand,
               RunsCommand, LogsCommand, ExportCommand, HealthCommand>
      command;
};

// `daemon_variable`: TANDEM_DAEMON's value; empty: not set. kInvalidArgument:
// no command line of tandemctl; the message ends with whose --help says more.
absl::StatusOr<CtlOptions> ParseCtlOptions(
    std::span<const absl::string_view> words,
    absl::string_view daemon_variable);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_CTL_OPTIONS_H_
