#include "viz/core/viewer_options.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "program/program_flags.h"
#include "viz/core/key_map.h"

ABSL_FLAG(tandem::RepeatedFlag, run, {},
          "RUN: a run to show; may be given again, for another tab");
ABSL_FLAG(
    tandem::RepeatedFlag, run_mode, {},
    "train, the default, or policy_eval: shows eval_summary.json as well. "
    "Given once: for all tabs; as often as --run: for each tab in turn");
ABSL_FLAG(tandem::RepeatedFlag, eval_summary, {},
          "FILE: the summary, read again every second; for all or each, as "
          "--run_mode; default: var/trainer/runs/RUN/eval_summary.json");
ABSL_FLAG(tandem::RepeatedFlag, agent_id, {},
          "ID: shown beside the run's name; for all or each, as --run_mode");
ABSL_FLAG(std::string, mode_label, tandem::ViewerOptions().mode_label,
          "TEXT: shown beside the state");
ABSL_FLAG(std::string, theme, "dark", "dark or light");
ABSL_FLAG(std::string, size, "1280x800",
          "WIDTHxHEIGHT of the window, 64 to 16384 each");
ABSL_FLAG(bool, image_only, false, "true: nothing around the image");
ABSL_FLAG(bool, shortcuts, true, "true: the keys below; false: no keys");
ABSL_FLAG(std::string, snapshots, tandem::ViewerOptions().snapshots,
          "FOLDER: where the key S saves images");
ABSL_FLAG(std::string, snapshot, "",
          "FILE.png: save the window there, then exit");
ABSL_FLAG(int64_t, after, tandem::ViewerOptions().after,
          "N, at least 1: new frames in every tab before --snapshot");
ABSL_FLAG(double, timeout, tandem::ViewerOptions().timeout_secs,
          "SECONDS above 0: how long --snapshot waits for those frames");
ABSL_FLAG(bool, offscreen, false,
          "true: needs no display; only with --snapshot");

namespace tandem {
namespace {

constexpr absl::string_view kUsage =
    R"(Usage: viewer [--run=RUN ...] [flags]      (bazel run //viz:viewer -- ...)

Shows the frames that engines and training workers publish in shared memory,
live, with reward, return and step rate. It only reads: no run waits for it, and
a pause here does not slow a run down. The exception is the engine's panel (E).
Plots, recordings and jobs are on the page, which the key P opens.

Without --run it opens a list of the current runs. A RUN is the name of an
engine's region, or the run id of a frame segment (mosaic.fastlane.RUN).

The word beside the image is its state:
  connected             the newest frame is at most 0.4 s old
  stale                 the newest frame is older, by the time shown: the run is
                        slow, busy, stopped, or killed
  reconnecting          the writer left, died or corrupted its ring; the viewer
                        attaches again automatically
  fastlane-unavailable  no run of that name publishes frames; the viewer waits

Examples:
  viewer --run=tandem
  viewer --run=01KATF46 --run_mode=policy_eval --eval_summary=out/eval_summary.json
  viewer --run=tandem --offscreen --snapshot=out.png --after=10    (no display)

Over SSH, where no window opens, --offscreen --snapshot works.
Exit codes: 0 success, 1 no snapshot could be made, 2 wrong command line.)";

const ProgramFlags& Flags() {
  static const ProgramFlags flags("viz/core/");
  return flags;
}

// Returns whether `text` is one of the two words; `is_yes` gets which.
bool SetWord(absl::string_view text, absl::string_view yes,
             absl::string_view no, bool* is_yes) {
  *is_yes = text == yes;
  return *is_yes || text == no;
}

bool SetSize(absl::string_view text, ViewerOptions* options) {
  const auto set_side = [](absl::string_view side, uint32_t* pixels) {
    return absl::SimpleAtoi(side, pixels) && *pixels >= 64 && *pixels <= 16384;
  };
  const std::vector<absl::string_view> sides = absl::StrSplit(text, 'x');
  return sides.size() == 2 && set_side(sides[0], &options->width) &&
         set_side(sides[1], &options->height);
}

}  // namespace

absl::StatusOr<ViewerOptions> ParseViewerOptions(
    std::span<const absl::string_view> words) {
  ViewerOptions options;
  options.help_wanted = ProgramFlags::WantHelp(words);
  if (options.help_wanted) return options;
  TANDEM_RETURN_IF_ERROR(Flags().SetFromWords(words));
  options.runs = absl::GetFlag(FLAGS_run).values;
  options.agent_ids = absl::GetFlag(FLAGS_agent_id).values;
  options.run_modes = absl::GetFlag(FLAGS_run_mode).values;
  options.eval_summaries = absl::GetFlag(FLAGS_eval_summary).values;
  const auto fits = [&options](const std::vector<std::string>& values) {
    return values.size() <= 1 || values.size() == options.runs.size();
  };
  const std::pair<bool, const absl::CommandLineFlag*> checks[] = {
      {fits(options.run_modes) && absl::c_all_of(options.run_modes,
                                                 [](absl::string_view mode) {
                                                   return mode == "train" ||
                                                          mode == "policy_eval";
                                                 }),
       &absl::GetFlagReflectionHandle(FLAGS_run_mode)},
      {fits(options.agent_ids), &absl::GetFlagReflectionHandle(FLAGS_agent_id)},
      {fits(options.eval_summaries),
       &absl::GetFlagReflectionHandle(FLAGS_eval_summary)},
      {SetWord(absl::GetFlag(FLAGS_theme), "dark", "light", &options.dark),
       &absl::GetFlagReflectionHandle(FLAGS_theme)},
      {SetSize(absl::GetFlag(FLAGS_size), &options),
       &absl::GetFlagReflectionHandle(FLAGS_size)},
      {absl::GetFlag(FLAGS_after) >= 1,
       &absl::GetFlagReflectionHandle(FLAGS_after)},
      {absl::GetFlag(FLAGS_timeout) > 0,
       &absl::GetFlagReflectionHandle(FLAGS_timeout)}};
  for (const auto& [valid, flag] : checks) {
    if (!valid) return ProgramFlags::Refuse(*flag);
  }
  options.mode_label = absl::GetFlag(FLAGS_mode_label);
  options.shortcuts = absl::GetFlag(FLAGS_shortcuts);
  options.image_only = absl::GetFlag(FLAGS_image_only);
  options.snapshots = absl::GetFlag(FLAGS_snapshots);
  options.offscreen = absl::GetFlag(FLAGS_offscreen);
  options.snapshot = absl::GetFlag(FLAGS_snapshot);
  options.after = absl::GetFlag(FLAGS_after);
  options.timeout_secs = absl::GetFlag(FLAGS_timeout);
  TANDEM_ASSIGN_OR_RETURN(options.daemon,
                          DaemonOptionsOfFlags(options.snapshot.empty()));
  if (options.offscreen && options.snapshot.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected --snapshot=FILE.png with --offscreen, which "
                     "shows nothing otherwise; found none");
  }
  return options;
}

std::string ValueOf(const std::vector<std::string>& values, size_t tab) {
  if (values.size() == 1) return values.front();
  return tab < values.size() ? values[tab] : "";
}

std::string ViewerHelp() {
  return absl::StrCat(Flags().Help(kUsage), "\nKeys:\n", KeyHelpText(2));
}

}  // namespace tandem
