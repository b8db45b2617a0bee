// TaskSessions: the reward terms that programs have negotiated.
//
// Data flow: NegotiateTask -> Begin -> RewardsOf, at each Step of the same
// connection -> the Step's reward_signals.
// Ownership: one for a gateway. Thread-safe; no call blocks.
//
//   const std::string id = sessions.Begin(context.peer(), {"reward"});
//   StepCall call(&request, &response, sessions.RewardsOf(context.peer()));

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_TASK_SESSIONS_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_TASK_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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

class TaskSessions {
 public:
  static constexpr size_t kMost = 1024;

  // Replaces the connection's session. Returns its id. kRingFull: too many
  // connections have one.
  absl::StatusOr<std::string> Begin(const std::string& peer,
                                    std::vector<std::string> rewards) {
    const std::lock_guard lock(mutex_);
    if (sessions_.size() >= kMost && !sessions_.contains(peer)) {
      return MakeError(
          ErrorCode::kRingFull,
          absl::StrCat("expected at most ", kMost,
                       " connections with a negotiated contract, found more; "
                       "next: end some programs"));
    }
    sessions_[peer] =
        std::make_shared<const std::vector<std::string>>(std::move(rewards));
    return absl::StrCat("task_", ++last_);
  }

  RewardTerms RewardsOf(const std::string& peer) const {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(peer);
    return found == sessions_.end() ? nullptr : found->second;
  }

  // The connection has ended.
  void End(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(peer);
  }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, RewardTerms> sessions_;
  uint64_t last_ = 0;
};

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_TASK_SESSIONS_H_
