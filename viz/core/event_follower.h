// EventFollower: the steps and episodes of one run of the daemon, as they are
// stored.
//
// Data flow: the daemon's streams -> two threads -> the newest steps, the
// number of the episodes -> Read, from the front end's thread.
// Ownership: one view of a run. The destructor ends the streams and blocks
// until the threads have ended.
//
// Steps come with credits: a front end shows some, so the daemon sends at most
// kStepsPerSec of them a second, and only after earlier ones were taken. A
// front end that is slow, or was stopped, costs the daemon nothing. After a
// broken connection, or a restart of the daemon, both streams continue behind
// the last number received: no event is missing, and none comes twice.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mutex.h"

namespace tandem {

class EventFollower {
 public:
  static constexpr uint32_t kStepsPerSec = 100;
  static constexpr size_t kKeptSteps = 200;

  struct Step {
    uint64_t number = 0;  // in the run's stream, from 1
    uint64_t episode = 0;
    uint64_t step = 0;
    double reward = 0;
    bool ended = false;  // terminated or truncated
  };

  struct Events {
    bool connected = false;  // false: it looks for the daemon
    bool has_ended = false;  // the run has, and everything was received
    std::string problem;     // the daemon's refusal; "": none
    uint64_t last_step = 0;  // numbers of the newest ones
    uint64_t last_episode = 0;
    std::deque<Step> steps;  // the newest, at most kKeptSteps
  };

  // Starts behind the step of the number `since_step`, and at the run's first
  // episode. `target`: as DaemonClient's.
  EventFollower(const std::string& target, std::string run_id,
                uint64_t since_step = 0);
  EventFollower(const EventFollower&) = delete;
  EventFollower& operator=(const EventFollower&) = delete;
  ~EventFollower();

  // Returns a copy. Any thread; does not wait for the daemon.
  Events Read() const;

 private:
  struct Calls;  // gRPC's

  // Calls `stream` until it has ended without an error, or was refused. Each
  // call follows one stream until it breaks.
  void Follow(absl::FunctionRef<absl::Status()> stream);
  absl::Status FollowSteps();
  absl::Status FollowEpisodes();

  const std::string target_;
  const std::string run_id_;
  const std::unique_ptr<Calls> calls_;

  mutable Mutex mutex_;
  CondVar wake_;  // for the end
  Events events_ ABSL_GUARDED_BY(mutex_);
  int ended_streams_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  // Last: they use the members above.
  std::thread steps_thread_;
  std::thread episodes_thread_;
};

// "1,234 steps, 5 episodes: live".
std::string SummaryText(const EventFollower::Events& events);

}  // namespace tandem
