#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/os/fork_guard.h"
#include "transport/rpc_client.h"

namespace tandem {

absl::StatusOr<std::shared_ptr<RpcClient>> RpcSession::Client() {
  // Before the lock: in a forked child, another thread's lock is never
  // released.
  if (born_in_ != ForkCount()) {
    return MakeError(ErrorCode::kForkedChild,
                     absl::StrCat("region '", side_->name(),
                                  "': ", MeaningOf(ErrorCode::kForkedChild),
                                  "; attach after the fork"));
  }
  MutexLock lock(&mutex_);
  if (!has_session_) {
    return MakeError(ErrorCode::kClientClosed,
                     absl::StrCat("region '", side_->name(),
                                  "': expected an open session, found one "
                                  "that was closed, or is not reconnected"));
  }
  if (client_ == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(client_, RpcClient::Create(side_, options_));
  }
  return client_;
}

void RpcSession::End() {
  if (born_in_ != ForkCount()) return;
  std::shared_ptr<RpcClient> ended;
  {
    MutexLock lock(&mutex_);
    has_session_ = false;
    ended = std::exchange(client_, nullptr);
  }
  if (ended != nullptr) ended->End();
}

void RpcSession::Begin() {
  MutexLock lock(&mutex_);
  has_session_ = true;
}

}  // namespace tandem
