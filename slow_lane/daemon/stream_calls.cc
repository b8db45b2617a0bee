#include "slow_lane/daemon/stream_calls.h"

#include <algorithm>
#include <utility>

#include "slow_lane/daemon/reactor.h"

namespace tandem::slow_lane {

using gymgui::trainer::RunRecord;
using gymgui::trainer::WatchRunsRequest;

std::string ControlKey(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto named = metadata.find("watcher-id");
  return named == metadata.end()
             ? context.peer()
             : std::string(named->second.data(), named->second.size());
}

UpdateStream::UpdateStream(const WatchRunsRequest& request, WatchHub* hub)
    : states_([&] {
        std::vector<RunState> states;
        for (const int state : request.status_filter()) {
          states.push_back(static_cast<RunState>(state));
        }
        return states;
      }()),
      hub_(hub),
      id_(hub->NewId()) {
  hub->AddUpdates(id_, request.since_seq(), this);
}

void UpdateStream::SendRuns(std::vector<RunRow> runs) { WriteAll(runs); }

void UpdateStream::Send(std::vector<RunUpdate> updates) { WriteAll(updates); }

template <typename Rows>
void UpdateStream::WriteAll(const Rows& rows) {
  auto kept = std::make_shared<std::vector<RunRecord>>();
  for (const auto& row : rows) {
    if (states_.empty() || std::find(states_.begin(), states_.end(),
                                     row.status) != states_.end()) {
      kept->push_back(ToRecord(row));
    }
  }
  if (kept->empty()) return BlockWritten();
  std::vector<const RunRecord*> messages;
  for (const RunRecord& record : *kept) messages.push_back(&record);
  Write(std::move(kept), std::move(messages));
}

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
