// AsyncEngineControl: what a front end shows of engines and does with them,
// without waiting.
//
// Data flow: a region's name -> the inspector, on a thread -> a panel as JSON;
// a user's action -> EngineControl, on another thread -> Pending.
// Ownership: one front end; its one thread. Reading takes nothing of an engine;
// an action takes an attendant slot.
//
// The slot is left when the action is done, except while it holds a pause: the
// end of the attendant ends the pause.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "viz/core/background.h"
#include "viz/core/engine_control.h"
#include "viz/inspect/inspection.h"

namespace tandem {

struct SwitchService {
  std::string service;
  bool on = false;
};
struct PauseEngine {
  bool on = false;  // false: resume
};
struct StepEngine {};
struct SetMode {
  std::string mode;   // of EngineControl::ModeNames
  double factor = 1;  // of real time
};
using EngineAction =
    std::variant<SwitchService, PauseEngine, StepEngine, SetMode>;

class AsyncEngineControl {
 public:
  static constexpr int64_t kForgetNs = 10'000'000'000;
  static constexpr size_t kMostReports = 64;

  // `label` is the attendant's, for display.
  explicit AsyncEngineControl(std::string label) : label_(std::move(label)) {}
  AsyncEngineControl(const AsyncEngineControl&) = delete;
  AsyncEngineControl& operator=(const AsyncEngineControl&) = delete;

  // As SlowRead::Newest: PanelJsonOf of its inspection. Forgets
  // reports that were not asked for within kForgetNs; has none beyond
  // kMostReports.
  std::shared_ptr<const std::string> Report(const std::string& region,
                                            int64_t now_ns,
                                            int64_t not_before_ns);

  // Starts an action. `done` gets the result on the action thread, before the
  // Pending has it. Its status: EngineControl's, or kInvalidArgument: an
  // unknown service; kNotReady: too many actions wait.
  std::shared_ptr<Pending> Act(
      const std::string& region, const EngineAction& action,
      std::function<void(const absl::Status& status)> done = {});

 private:
  absl::Status Perform(const std::string& region, const EngineAction& action);

  struct Reading {
    std::shared_ptr<SlowRead<std::string>> report =
        std::make_shared<SlowRead<std::string>>();
    // Of report_thread_. One for each region: it keeps its last report.
    std::shared_ptr<Inspector> inspector = std::make_shared<Inspector>();
  };

  const std::string label_;
  std::map<std::string, Reading> readings_;  // by region
  // Of engines that this program has paused. Of action_thread_.
  std::map<std::string, EngineControl> paused_;
  // Last: they use the members above.
  WorkThread action_thread_;
  WorkThread report_thread_;
};

}  // namespace tandem
