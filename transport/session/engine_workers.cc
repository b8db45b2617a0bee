#include "transport/session/engine_workers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "transport/session/worker_text.h"

namespace tandem {

EngineWorkers::EngineWorkers(const OwnedRegion& region)
    : mapping_(region.mapping()),
      header_(mapping_->header()),
      head_(mapping_->At<WorkersHeader>(header_->workers_offset)),
      slots_(mapping_->At<WorkerSlot>(WorkerSlotOffset(*header_, 0)),
             header_->num_workers),
      rows_(region.workers()),
      first_lock_byte_(static_cast<uint64_t>(WorkerLockByte(*header_, 0))),
      election_(*mapping_, *header_, kSupervisorIndex),
      engine_bell_(&header_->engine_doorbell, &header_->engine_sleepers),
      client_bell_(&header_->client_doorbell, &header_->client_sleepers),
      known_dead_(rows_.size(), false) {}

void EngineWorkers::Order(WorkerOrder order, uint64_t value) {
  ++order_;
  // All workers have acknowledged the order before, but the replacement of one
  // that died may read its kind and value at any time.
  // relaxed: the fence orders it before the value.
  head_->order_kind.store(static_cast<uint32_t>(WorkerOrder::kHold),
                          std::memory_order_relaxed);
  // SYNC(workers.kind): fence; the kind `hold`, then another order's value.
  std::atomic_thread_fence(std::memory_order_release);
  // relaxed: the kind publishes it.
  head_->order_value.store(value, std::memory_order_relaxed);
  // SYNC(workers.kind): release; the value before its kind.
  head_->order_kind.store(static_cast<uint32_t>(order),
                          std::memory_order_release);
  // SYNC(workers.order): release; kind and value, and all that the supervisor
  // has written, before the number.
  head_->order.store(order_, std::memory_order_release);
  engine_bell_.NotifyIfWaiting();
}

bool EngineWorkers::AllAcknowledged() const {
  return std::ranges::all_of(slots_, [this](const WorkerSlot& slot) {
    // SYNC(workers.ack): acquire; the number, then the order's effects.
    return slot.ack.load(std::memory_order_acquire) == order_;
  });
}

EngineWorkers::Progress EngineWorkers::ProgressAt(uint64_t frame_seq) const {
  Progress progress;
  for (const WorkerSlot& slot : slots_) {
    // SYNC(workers.done): acquire; the number, then the worker's rows.
    const uint64_t ahead =
        slot.done.load(std::memory_order_acquire) - frame_seq;
    progress.valid = progress.valid && ahead <= 1;
    progress.begun = progress.begun || ahead == 1;
    progress.done = progress.done && ahead == 1;
  }
  return progress;
}

bool EngineWorkers::AllHave(uint64_t count) const {
  return std::ranges::all_of(slots_, [count](const WorkerSlot& slot) {
    // relaxed: only compared; the workers are held.
    return slot.done.load(std::memory_order_relaxed) == count;
  });
}

void EngineWorkers::SetCount(uint64_t count) {
  // relaxed: the next order publishes it.
  head_->publisher.store(PackPublisher(count, kSupervisorIndex),
                         std::memory_order_relaxed);
}

void EngineWorkers::DropLanes() {
  for (WorkerSlot& slot : slots_) {
    // relaxed: the worker is held; the next order, or attach_ack, publishes it.
    StoreIfOther(&slot.lane_go, slot.lane_done.load(std::memory_order_relaxed));
  }
}

void EngineWorkers::Publish(uint64_t exchange) {
  election_.Publish(exchange);
  client_bell_.NotifyIfWaiting();
}

bool EngineWorkers::TakeOver(const OwnedRegion& region, int64_t now_ns) {
  // Before frame_seq: if workers publish this exchange and another one while
  // this process is preempted, the word is another one, and WinFrom fails.
  // SYNC(workers.publisher): acquire; the winner, then frame_seq.
  uint64_t publisher = head_->publisher.load(std::memory_order_acquire);
  // SYNC(lockstep.frame): acquire; the number, then the end of this exchange.
  const uint64_t frame_seq = header_->frame_seq.load(std::memory_order_acquire);
  const uint64_t exchange = frame_seq + 1;
  if (!election_.AllDone(exchange)) return false;
  if (!HasPublisher(publisher, exchange)) {
    if (std::exchange(overdue_, exchange) != exchange) overdue_at_ns_ = now_ns;
    if (now_ns - overdue_at_ns_ < kPatienceNs) return false;
    if (!election_.WinFrom(&publisher, exchange)) return false;
  } else {
    const uint32_t winner = PublisherIndex(publisher);
    // The kernel releases a dead winner's lock after its last store. So if it
    // has published, frame_seq shows that now.
    if (winner < size() && IsAlive(winner, region)) return false;
    // SYNC(lockstep.frame): acquire; as above.
    if (header_->frame_seq.load(std::memory_order_acquire) != frame_seq) {
      return false;
    }
  }
  Publish(exchange);
  return true;
}

std::optional<uint32_t> EngineWorkers::FindDead(const OwnedRegion& region) {
  for (size_t tested = 0; tested < kLocksPerCall; ++tested) {
    const auto worker = static_cast<uint32_t>(next_lock_);
    next_lock_ = next_lock_ + 1 == slots_.size() ? 0 : next_lock_ + 1;
    // SYNC(workers.hello): acquire; the label, then the lock: it was held.
    if (slots_[worker].pid.load(std::memory_order_acquire) != 0 &&
        !known_dead_[worker] && !IsAlive(worker, region)) {
      known_dead_[worker] = true;
      return worker;
    }
    if (TestedAll()) break;
  }
  return std::nullopt;
}

bool EngineWorkers::Replace(uint32_t worker, const OwnedRegion& region,
                            bool takes_over, int64_t now_ns) {
  if (IsAlive(worker, region)) return false;
  // Afterwards a winner's lock may be its replacement's.
  if (takes_over) (void)TakeOver(region, now_ns);
  known_dead_[worker] = false;
  // relaxed: a label; the replacement stores its own.
  slots_[worker].pid.store(0, std::memory_order_relaxed);
  return true;
}

uint64_t EngineWorkers::Activity() const {
  // relaxed: only compared.
  uint64_t sum = header_->frame_seq.load(std::memory_order_relaxed);
  for (const WorkerSlot& slot : slots_) {
    // relaxed: as above.
    sum += slot.lane_done.load(std::memory_order_relaxed);
  }
  return sum;
}

uint64_t EngineWorkers::Steps() const {
  uint64_t sum = 0;
  for (const WorkerSlot& slot : slots_) {
    // relaxed: for display.
    sum += slot.steps.load(std::memory_order_relaxed);
  }
  return sum;
}

std::string EngineWorkers::TextOf(uint32_t worker, int64_t now_ns) const {
  return WorkerText(slots_[worker], worker, rows_[worker], now_ns);
}

void EngineWorkers::ShowEnd(ErrorCode code, absl::string_view text) {
  std::memset(head_->end_text, 0, sizeof(head_->end_text));
  text.copy(head_->end_text, sizeof(head_->end_text) - 1);
  // SYNC(workers.end): release; the text before the code.
  head_->end_code.store(static_cast<uint32_t>(code), std::memory_order_release);
}

}  // namespace tandem
