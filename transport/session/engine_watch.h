// EngineWatch: ends a long wait for the engine's answer, for reasons that the
// region's words do not show.
//
// Data flow: the engine's lock and the caller's hook -> Waiter.
// Ownership: a wait of an RpcSide's owner has one on its stack.

#pragma once

#include <cstdint>

#include "schema/layout/error_codes.h"
#include "transport/rpc_side.h"
#include "transport/wait/waiter.h"
#include "transport/wait_strategy.h"

namespace tandem {

class EngineWatch final : public WaitWatch {
 public:
  // `side` must outlive this object. nullptr: no hook.
  EngineWatch(const RpcSide& side, InterruptHook interrupted)
      : side_(side), interrupted_(interrupted) {}

  // kPeerGone: the engine is dead. kInterrupted: the hook returned true. Makes
  // a system call.
  ErrorCode Check(int64_t, bool) override {
    if (!side_.EngineAlive()) return ErrorCode::kPeerGone;
    return interrupted_ != nullptr && interrupted_() ? ErrorCode::kInterrupted
                                                     : ErrorCode::kOk;
  }

 private:
  const RpcSide& side_;
  InterruptHook interrupted_;
};

}  // namespace tandem
