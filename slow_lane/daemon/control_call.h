// ControlCall: a ControlStream, both ways.
//
// Data flow: grant_steps, max_rate_hz -> the hub; pause, resume -> the
// supervisor; STARVED (pause: true) and RESUMED (resume: true) come back.
// Ownership: deletes itself once gRPC and the hub are done with it.
//
//   return new ControlCall(ControlKey(*context), hub, runs);

#ifndef TANDEM_SLOW_LANE_DAEMON_CONTROL_CALL_H_
#define TANDEM_SLOW_LANE_DAEMON_CONTROL_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/watch_hub.h"

namespace tandem::slow_lane {

class ControlCall final
    : public grpc::ServerBidiReactor<gymgui::trainer::ControlEvent,
                                     gymgui::trainer::ControlEvent>,
      public ControlSink {
 public:
  ControlCall(std::string key, WatchHub* hub, RunSupervisor* runs);

  void Tell(const gymgui::trainer::ControlEvent& event) override;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

  // Asks the supervisor; the answer, if it is an error, ends the call.
  void Obey(const gymgui::trainer::ControlEvent& event);
  // The client has nothing more to say, or asked for what cannot be.
  void Leave(const absl::Status& status);

  const std::string key_;
  WatchHub* const hub_;
  RunSupervisor* const runs_;
  gymgui::trainer::ControlEvent message_;  // being read

  std::mutex mutex_;  // guards what follows
  std::deque<gymgui::trainer::ControlEvent> to_tell_;
  bool writing_ = false;
  bool leaving_ = false;
  std::optional<absl::Status> end_;  // the hub is done with it
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_CONTROL_CALL_H_
