// ViewerOptions: the viewer's command line.
//
// Data flow: argv -> absl flags -> checked options; --help lists the flags.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "viz/core/daemon_starter.h"

namespace tandem {

struct ViewerOptions {
  bool help_wanted = false;  // true: nothing else was checked
  std::vector<std::string> runs;
  // One for all tabs, or one for each run in turn: see ValueOf. "": the
  // default.
  std::vector<std::string> agent_ids;
  std::vector<std::string> run_modes;       // "train" or "policy_eval"
  std::vector<std::string> eval_summaries;  // "": MOSAIC's path
  std::string mode_label = "Fast lane";
  bool shortcuts = true;
  bool dark = true;
  bool image_only = false;
  uint32_t width = 1280;
  uint32_t height = 800;
  std::string snapshots = ".";  // folder
  bool offscreen = false;
  std::string snapshot;  // "": none
  int64_t after = 1;     // the number of new frames before the snapshot
  double timeout_secs = 30;
  DaemonOptions daemon;
};

// Errors: as ProgramFlags::SetFromWords; also kInvalidArgument for a value out
// of range and for contradictory flags. A flag that is absent from `words`
// keeps its value from the last call.
absl::StatusOr<ViewerOptions> ParseViewerOptions(
    std::span<const absl::string_view> words);

// Returns the only value, or else the tab's; "" for a tab that the command line
// does not name.
std::string ValueOf(const std::vector<std::string>& values, size_t tab);

// Returns a description, examples, all flags with their defaults, and all keys.
std::string ViewerHelp();

}  // namespace tandem
