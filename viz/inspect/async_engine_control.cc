#include "viz/inspect/async_engine_control.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "schema/layout/service.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {

std::shared_ptr<const std::string> AsyncEngineControl::Report(
    const std::string& region, int64_t now_ns, int64_t not_before_ns) {
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

std::shared_ptr<Pending> AsyncEngineControl::Act(
    const std::string& region, const EngineAction& action,
    std::function<void(const absl::Status& status)> done) {
  return StartAction(
      &action_thread_,
      [this, region, action]() -> absl::StatusOr<std::string> {
        TANDEM_RETURN_IF_ERROR(Perform(region, action));
        return "Done";
      },
      std::move(done));
}

namespace {

// Calls an engine for an action.
struct Caller {
  EngineControl& control;

  absl::Status operator()(const SwitchService& action) const {
    return control.SwitchService(action.service, action.on);
  }
  absl::Status operator()(const PauseEngine& action) const {
    return control.SetPaused(action.on);
  }
  absl::Status operator()(const StepEngine&) const {
    return control.SingleStep();
  }
  absl::Status operator()(const SetMode& action) const {
    return control.SetMode(action.mode, action.factor);
  }
};

}  // namespace

absl::Status AsyncEngineControl::Perform(const std::string& region,
                                         const EngineAction& action) {
  if (const auto* switches = std::get_if<SwitchService>(&action);
      switches != nullptr &&
      !absl::c_linear_search(kServiceNames, switches->service)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a service's name, found ",
                                  Quoted(switches->service)));
  }
  if (const auto held = paused_.find(region);
      held != paused_.end() && !held->second.EngineAlive()) {
    paused_.erase(held);
  }
  auto held = paused_.find(region);
  if (held == paused_.end()) {
    TANDEM_ASSIGN_OR_RETURN(EngineControl control,
                            EngineControl::Attach(region, label_));
    held = paused_.emplace(region, std::move(control)).first;
  }
  EngineControl& control = held->second;
  const absl::Status status = std::visit(Caller{control}, action);
  const absl::StatusOr<EngineControl::Mode> mode = control.ReadMode();
  if (!mode.ok() || !mode->paused) paused_.erase(held);
  return status;
}

}  // namespace tandem
