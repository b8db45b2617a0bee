// FrameRelay: shows frames of runs on other machines in frame rings of this
// machine, each under its run's id. So viewers find them like those of runs
// here.
//
// Data flow: RelayFrame -> the supervisor admits it -> this object's thread:
// JPEG -> pixels -> the run's segment -> the answer: whether a viewer wants the
// next frame. Ownership: the daemon owns it; it owns the segments. They end
// with the run, a second later at most, and with the daemon; those of a killed
// daemon end when the next one starts.
//
// What it gets is untrusted: a wrong frame is refused, and changes nothing.

#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "program/grpc/event_loop.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "transport/owned_frame_segment.h"

namespace tandem::slow_lane {

class FrameRelay {
 public:
  using Answer = RunSupervisor::Answer<v1::RelayFrameResponse>;

  // Removes dead segments. `runs` must outlive this object, which must outlive
  // the thread of `runs`, and all calls.
  explicit FrameRelay(RunSupervisor* runs);
  FrameRelay(const FrameRelay&) = delete;
  FrameRelay& operator=(const FrameRelay&) = delete;

  // `request` must live until the answer. Any thread; does not block. Answers
  // on the supervisor's thread or on this object's:
  //   those of RunSupervisor::Relay
  //   kInvalidArgument    the file is no such JPEG, or too large, or the
  //                       metadata is
  //   kAlreadyExists      another writer on this machine has the run's id
  //   kResourceExhausted  /dev/shm has no room
  void Take(const v1::RelayFrameRequest* request, Answer answer) {
    runs_->Relay(request, &loop_, std::move(answer),
                 [this](const auto& frame) { return Show(frame); });
  }

 private:
  // The loop's thread runs these.
  absl::StatusOr<v1::RelayFrameResponse> Show(
      const v1::RelayFrameRequest& request);
  void CheckRings();

  RunSupervisor* const runs_;
  std::map<std::string, OwnedFrameSegment> rings_;  // by run_id
  bool checking_ = false;                           // CheckRings will be called
  EventLoop loop_;  // last: its thread ends first
};

}  // namespace tandem::slow_lane
