// Connections: what the gateway knows of each program's connection: whether it
// has stepped, and the reward terms that it has negotiated.
//
// Data flow: NegotiateTask -> BeginTask; Step -> BeginStep -> the terms of its
// reward_signals; the kernel -> End -> the client slot is released.
// Ownership: one for a gateway. Thread-safe; no call blocks. A connection's
// name is that of gRPC's ServerContext::peer().
//
//   StepCall call(&request, &response, connections.BeginStep(context.peer()));
//   if (connections.End(peer)) slot.Release();

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_CONNECTIONS_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

namespace tandem::gateway {

// nullptr: nothing was negotiated.
using RewardTerms = std::shared_ptr<const std::vector<std::string>>;

class Connections {
 public:
  static constexpr size_t kMostTasks = 1024;

  // Replaces the connection's task. Returns the id of its session. kRingFull:
  // too many connections have one.
  absl::StatusOr<std::string> BeginTask(const std::string& peer,
                                        std::vector<std::string> rewards) {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= kMostTasks && !tasks_.contains(peer)) {
      return MakeError(
          ErrorCode::kRingFull,
          absl::StrCat("expected at most ", kMostTasks,
                       " connections with a negotiated contract, found more; "
                       "next: end some programs"));
    }
    tasks_[peer] =
        std::make_shared<const std::vector<std::string>>(std::move(rewards));
    return absl::StrCat("task_", ++last_task_);
  }

  // The connection steps or resets. Returns the terms of its task.
  RewardTerms BeginStep(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    stepping_.insert(peer);
    const auto found = tasks_.find(peer);
    return found == tasks_.end() ? nullptr : found->second;
  }

  // The connection has ended. Whether it was the last that had stepped.
  bool End(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    tasks_.erase(peer);
    return stepping_.erase(peer) > 0 && stepping_.empty();
  }

  bool AnySteps() const {
    const std::lock_guard lock(mutex_);
    return !stepping_.empty();
  }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, RewardTerms> tasks_;
  std::set<std::string> stepping_;
  uint64_t last_task_ = 0;
};

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_CONNECTIONS_H_
