#include "slow_lane/daemon/control_call.h"

#include <utility>

#include "slow_lane/daemon/grpc_status.h"

namespace tandem::slow_lane {

using gymgui::trainer::ControlEvent;

ControlCall::ControlCall(std::string key, WatchHub* hub, RunSupervisor* runs)
    : key_(std::move(key)), hub_(hub), runs_(runs) {
  StartRead(&message_);
}

void ControlCall::OnReadDone(bool ok) {
  if (!ok) return Leave(absl::OkStatus());
  Obey(message_);
}

void ControlCall::Obey(const ControlEvent& event) {
  auto done = [this](const absl::Status& status) {
    if (!status.ok()) return Leave(status);
    StartRead(&message_);
  };
  const std::string& run_id = event.run_id();
  switch (event.event_case()) {
    case ControlEvent::kPause:
    case ControlEvent::EVENT_NOT_SET:
    case ControlEvent::kResume:
      break;
    case ControlEvent::kGrantSteps:
    case ControlEvent::kMaxRateHz:
      return runs_->Find(
          run_id, [this, event, done](const absl::StatusOr<bool>& found) {
            if (!found.ok()) return Leave(found.status());
            if (event.has_grant_steps()) {
              hub_->Grant(key_, event.run_id(), event.grant_steps(), this);
            } else {
              hub_->LimitRate(key_, event.run_id(), event.max_rate_hz(), this);
            }
            done(absl::OkStatus());
          });
  }
  if (event.has_pause() && event.pause()) return runs_->Pause(run_id, done);
  if (event.has_resume() && event.resume()) return runs_->Resume(run_id, done);
  done(absl::OkStatus());  // nothing is asked for
}

void ControlCall::Tell(const ControlEvent& event) {
  const std::lock_guard lock(mutex_);
  if (leaving_) return;
  to_tell_.push_back(event);
  if (writing_) return;
  writing_ = true;
  StartWrite(&to_tell_.front());
}

void ControlCall::OnWriteDone(bool ok) {
  std::optional<absl::Status> end;
  {
    const std::lock_guard lock(mutex_);
    to_tell_.pop_front();
    writing_ = false;
    // A failed write: the read that is under way fails, too, and leaves.
    if (ok && !leaving_ && !to_tell_.empty()) {
      writing_ = true;
      StartWrite(&to_tell_.front());
      return;
    }
    end = end_;
  }
  if (end.has_value()) Finish(ToGrpc(*end));
}

void ControlCall::Leave(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  hub_->RemoveControl(this, [this, status] {
    {
      const std::lock_guard lock(mutex_);
      end_ = status;
      if (writing_) return;  // OnWriteDone finishes
    }
    Finish(ToGrpc(status));
  });
}

}  // namespace tandem::slow_lane
