// Connections: what the gateway knows of each program's open connection:
// whether it has stepped, and the reward terms that it has negotiated.
//
// Data flow: the acceptor -> Begin; NegotiateTask -> BeginTask; Step ->
// BeginStep -> the terms of its reward_signals; the kernel -> End -> the client
// slot is released.
// Ownership: one for a gateway. Thread-safe; no call blocks. A connection's
// name is that of gRPC's ServerContext::peer().

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace tandem::gateway {

// nullptr: nothing was negotiated.
using RewardTerms = std::shared_ptr<const std::vector<std::string>>;

class Connections {
 public:
  // The connection is open. Call it before gRPC has the connection: a call may
  // arrive at once. No effect on an open one.
  void Begin(const std::string& peer) {
    MutexLock lock(&mutex_);
    open_.try_emplace(peer);
  }

  // Replaces the connection's task. Returns the id of its session. CANCELLED:
  // the connection has ended.
  absl::StatusOr<std::string> BeginTask(const std::string& peer,
                                        std::vector<std::string> rewards) {
    MutexLock lock(&mutex_);
    const auto found = open_.find(peer);
    if (found == open_.end()) return Ended();
    found->second.rewards =
        std::make_shared<const std::vector<std::string>>(std::move(rewards));
    return absl::StrCat("task_", ++last_task_);
  }

  // The connection steps or resets. Returns the terms of its task. CANCELLED:
  // the connection has ended, perhaps before gRPC has started its call. The
  // call must not attach: no End would release the client slot.
  absl::StatusOr<RewardTerms> BeginStep(const std::string& peer) {
    MutexLock lock(&mutex_);
    const auto found = open_.find(peer);
    if (found == open_.end()) return Ended();
    found->second.steps = true;
    return found->second.rewards;
  }

  // The connection has ended. Whether it was the last that had stepped.
  bool End(const std::string& peer) {
    MutexLock lock(&mutex_);
    const auto ended = open_.extract(peer);
    return ended && ended.mapped().steps && !AnyStepsLocked();
  }

  bool AnySteps() const {
    MutexLock lock(&mutex_);
    return AnyStepsLocked();
  }

 private:
  struct Connection {
    bool steps = false;
    RewardTerms rewards = nullptr;
  };

  static absl::Status Ended() {
    return absl::CancelledError("the program has disconnected");
  }

  bool AnyStepsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::ranges::any_of(
        open_, [](const auto& each) { return each.second.steps; });
  }

  mutable Mutex mutex_;
  std::map<std::string, Connection> open_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_task_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::gateway
