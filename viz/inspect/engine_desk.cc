#include "viz/inspect/engine_desk.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "schema/layout/service.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {

std::shared_ptr<const std::string> EngineDesk::Report(const std::string& region,
                                                      int64_t now_ns,
                                                      int64_t not_before_ns) {
  std::erase_if(readings_, [now_ns](const auto& item) {
    return now_ns - item.second.report->wanted_ns() > kForgetNs;
  });
  if (readings_.size() >= kMostReports && !readings_.contains(region)) {
    return nullptr;
  }
  const Reading& reading = readings_[region];
  return reading.report->Newest(
      &report_thread_, now_ns, not_before_ns,
      [region, inspector = reading.inspector] {
        return PanelJsonOf(inspector->InspectName(region));
      });
}

std::shared_ptr<Pending> EngineDesk::Act(
    const EngineAction& action,
    std::function<void(const absl::Status& status)> done) {
  return StartAction(
      &action_thread_,
      [this, action]() -> absl::StatusOr<std::string> {
        TANDEM_RETURN_IF_ERROR(Perform(action));
        return "Done";
      },
      std::move(done));
}

absl::Status EngineDesk::Perform(const EngineAction& action) {
  if (!IsAction(action.what)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected an action on an engine, found ",
                                  Quoted(action.what)));
  }
  if (action.what == "switch" &&
      !absl::c_linear_search(kServiceNames, action.service)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a service's name, found ",
                                  Quoted(action.service)));
  }
  if (const auto held = paused_.find(action.region);
      held != paused_.end() && !held->second.EngineAlive()) {
    paused_.erase(held);
  }
  auto held = paused_.find(action.region);
  if (held == paused_.end()) {
    TANDEM_ASSIGN_OR_RETURN(EngineControl control,
                            EngineControl::Attach(action.region, label_));
    held = paused_.emplace(action.region, std::move(control)).first;
  }
  EngineControl& control = held->second;
  absl::Status status;
  if (action.what == "switch") {
    status = control.SwitchService(action.service, action.on);
  } else if (action.what == "pause") {
    status = control.SetPaused(action.on);
  } else if (action.what == "step") {
    status = control.SingleStep();
  } else {
    status = control.SetMode(action.mode, action.factor);
  }
  const absl::StatusOr<EngineControl::Mode> mode = control.ReadMode();
  if (!mode.ok() || !mode->paused) paused_.erase(held);
  return status;
}

}  // namespace tandem
