// FrameSender: sends the newest frames of a run to the daemon, which is on
// another machine and shows them there.
//
// Data flow: the run's frame ring on this machine -> JPEG -> RelayFrame -> the
// daemon's answer: whether it wants the next. So a slow network gets fewer
// frames, and never old ones. Ownership: the proxy owns it; it owns its thread
// and a connection of its own.
//
// Each second it asks whether a frame is wanted. Only then it attaches to the
// ring, by which the engine sees a viewer and renders. A frame that fails is
// not repeated.

#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/daemon_link.h"
#include "transport/attached_frames.h"
#include "transport/frame_reader.h"

namespace tandem::slow_lane {

class FrameSender {
 public:
  // Starts the thread. `link` must outlive this object; its call is not used.
  // `token`: the run's, by which its processes are found.
  FrameSender(const DaemonLink& link, std::string run_id, std::string token);
  FrameSender(const FrameSender&) = delete;
  FrameSender& operator=(const FrameSender&) = delete;
  // Cancels a call, and blocks until the thread has ended.
  ~FrameSender() = default;

  // While it is held, no frame is sent. Any thread; does not block.
  void Hold(bool held) {
    // relaxed: the thread reads nothing else of the caller's.
    held_.store(held, std::memory_order_relaxed);
  }

 private:
  // Only the thread calls these.
  void Run(const std::stop_token& stop);
  // Looks for a ring of the run's processes.
  void Find();
  bool Attach(absl::StatusOr<AttachedFrames> opened);
  // Gets the ring's next frame; returns whether there is one.
  bool Take(v1::RelayedFrame* into);
  void Note(const absl::Status& result);

  const DaemonLink& link_;
  const std::string run_id_;
  const std::string token_;
  std::atomic<bool> held_ = false;

  // Only the thread uses these.
  std::optional<AttachedFrames> ring_;
  Frame frame_;
  std::string problem_;  // the last one in the log

  std::jthread thread_;  // last: it ends first
};

}  // namespace tandem::slow_lane
