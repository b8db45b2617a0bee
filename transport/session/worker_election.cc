#include "transport/session/worker_election.h"

#include "absl/strings/str_cat.h"
#include "schema/layout/error_codes.h"
#include "transport/session/exchange_status.h"
#include "transport/session/worker_error.h"

namespace tandem {

void WorkerElection::Publish(uint64_t exchange) {
  // relaxed: action_seq published it; all workers have read it.
  const uint32_t kind = header_->exchange_kind.load(std::memory_order_relaxed);
  size_t failed = 0;
  while (failed < slots_.size() &&
         // relaxed: done published it.
         slots_[failed].failed_exchange.load(std::memory_order_relaxed) !=
             exchange) {
    ++failed;
  }
  if (kind > static_cast<uint32_t>(ExchangeKind::kResetOnly)) {
    StoreStatus(
        header_, ErrorCode::kUnsupported,
        "exchange_kind: expected 0 or 1, found another; nothing was stepped");
  } else if (failed < slots_.size()) {
    StoreFailure(exchange, failed);
  } else {
    StoreStatus(header_, ErrorCode::kOk, "");
  }
  // A header-only client after this one finds the default.
  // relaxed: frame_seq publishes it.
  StoreIfOther(&header_->exchange_kind, 0);
  // SYNC(lockstep.frame): release; the rows of all workers, whose numbers were
  // acquired, before this number.
  header_->frame_seq.store(exchange, std::memory_order_release);
}

void WorkerElection::StoreFailure(uint64_t exchange, size_t first) {
  size_t others = 0;
  for (const WorkerSlot& slot : slots_.subspan(first + 1)) {
    // relaxed: done published it.
    if (slot.failed_exchange.load(std::memory_order_relaxed) == exchange) {
      ++others;
    }
  }
  const WorkerError error = WorkerErrorOf(slots_[first]);
  StoreStatus(header_, ErrorCode::kEnvFailed,
              absl::StrCat("environment ", error.env,
                           others == 0 ? ""
                                       : absl::StrCat(" (and of ", others,
                                                      " other workers)"),
                           ": ", error.last_line));
}

}  // namespace tandem
