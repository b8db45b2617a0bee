// ControlCall: gRPC's reactor for a ControlStream.
//
// Data flow: the client's messages -> WatchHub (credits, rate) or RunSupervisor
// (pause, resume, a worker's answers); WatchHub -> STARVED and RESUMED, and
// RunSupervisor -> pauses -> the client. The call's initial metadata tell the
// client that its first message was handled. If the client's metadata have
// acknowledge-controls, the daemon answers each handled message by a message
// without an event.
// Ownership: deletes itself after gRPC and the hub have finished with it.

#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "program/grpc/reactor.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"

namespace tandem::slow_lane {

class ControlCall final
    : public grpc::ServerBidiReactor<gymgui::trainer::ControlEvent,
                                     gymgui::trainer::ControlEvent>,
      public ControlSink {
 public:
  using ControlEvent = gymgui::trainer::ControlEvent;

  // `session_token`: from the call's metadata, empty for none.
  ControlCall(std::string key, std::string session_token, bool acknowledges,
              WatchHub* hub, RunSupervisor* runs)
      : key_(std::move(key)),
        session_token_(std::move(session_token)),
        acknowledges_(acknowledges),
        hub_(hub),
        runs_(runs) {
    StartRead(&message_);
  }

  void Send(const ControlEvent& event) override {
    MutexLock lock(&mutex_);
    if (ending_) return;
    to_send_.push_back(event);
    has_begun_ = true;  // a message brings the metadata
    if (writing_) return;
    writing_ = true;
    StartWrite(&to_send_.front());
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    Handle(message_);
  }

  void OnWriteDone(bool ok) override {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mutex_);
      to_send_.pop_front();
      writing_ = false;
      // After a failed write, the read in progress fails, too, and ends the
      // call.
      if (ok && !ending_ && !to_send_.empty()) {
        writing_ = true;
        StartWrite(&to_send_.front());
        return;
      }
      end = end_;
    }
    if (end.has_value()) Finish(ToGrpc(*end));
  }

  void OnDone() override { delete this; }

  // Calls the supervisor; if it returns an error, the call ends.
  void Handle(const ControlEvent& event) {
    auto done = [this, run_id = event.run_id()](const absl::Status& status) {
      if (!status.ok()) return End(status);
      Begin();
      if (acknowledges_) {
        // After the hub has handled the message.
        hub_->Read([this, run_id](EventReader&) {
          ControlEvent handled;
          handled.set_run_id(run_id);
          Send(handled);
        });
      }
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
        return runs_->Find(run_id, [this, event,
                                    done](const absl::StatusOr<bool>& found) {
          if (!found.ok()) return End(found.status());
          if (event.has_grant_steps()) {
            hub_->Grant(key_, event.run_id(), event.grant_steps(), this);
          } else {
            hub_->LimitRate(key_, event.run_id(), event.max_rate_hz(), this);
          }
          done(absl::OkStatus());
        });
    }
    if (!session_token_.empty()) {
      return runs_->WorkerControl(event, session_token_, this, done);
    }
    if (event.pause()) return runs_->Pause(run_id, done);
    if (event.resume()) {
      return runs_->Resume(run_id, done);
    }
    done(absl::OkStatus());  // an empty request
  }

  // A watcher's call that begins later is handled later, too, by the hub.
  void Begin() {
    MutexLock lock(&mutex_);
    if (!std::exchange(has_begun_, true)) StartSendInitialMetadata();
  }

  // Called after the client's last message, or an invalid one.
  void End(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      ending_ = true;
    }
    runs_->ForgetControl(this, [this, status] {
      hub_->RemoveControl(this, [this, status] {
        {
          MutexLock lock(&mutex_);
          end_ = status;
          if (writing_) return;  // OnWriteDone finishes
        }
        Finish(ToGrpc(status));
      });
    });
  }

  const std::string key_;
  const std::string session_token_;
  const bool acknowledges_;
  WatchHub* const hub_;
  RunSupervisor* const runs_;
  ControlEvent message_;  // the message in the read

  Mutex mutex_;
  std::deque<ControlEvent> to_send_ ABSL_GUARDED_BY(mutex_);
  // The initial metadata are sent.
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Set when the hub has finished.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::slow_lane
