// CoreSharing: whether a side that sleeps between two requests sleeps on its
// peer's core, and on which.
//
// Data flow: lengths of waits, and the peer's word -> a core, and the own word.
// docs/waiting.md gives the reasons and the measurements.
//
//  state  left when
//  off    of the last waits, kWaitsToChange more slept for kLongNs or longer
//         than did not: on
//  on     the count, which stops at kWaitsToChange, is 0 again: off
//
//   const int core = sharing.CoreAt(now_ns);  // -1: sleep anywhere
//   sharing.Tell(core);                       // before the sleep
//   ... sleep on the core ...
//   sharing.Tell(-1);                         // after it
//   sharing.Waited(length_ns, slept, now_ns);

#pragma once

#include <algorithm>
#include <cstdint>

#include "schema/layout/shared_word.h"
#include "transport/wait/spin_budget.h"

namespace tandem {

// Not thread-safe; no call blocks, allocates or makes a system call. Both words
// are hints, which any process may overwrite.
//
//  word  writer  reader  publishes                           initially
//  peer  peer    owner   nothing; 1 + its core; 0: none      0
//  own   owner   peer    nothing; 1 + the core of the sleep  0
class CoreSharing {
 public:
  // A spin may see the end of a shorter wait.
  static constexpr int64_t kLongNs = SpinBudget::kLongestNs;
  static constexpr int kWaitsToChange = 8;
  // A peer that asks for nothing for longer may be frozen, or come back on
  // another core.
  static constexpr int64_t kSharesForNs = 100'000'000;

  // Begins: before this call no core is shared. The words outlive this object.
  void Share(const SharedWord<uint32_t>* peer, SharedWord<uint32_t>* own) {
    peer_ = peer;
    own_ = own;
    Tell(-1);
  }

  // Whether requests are slow.
  bool on() const { return on_; }
  // Whether requests are slow, and the peer names a core.
  bool Shares() const { return on_ && PeerCore() >= 0; }
  // Whether a short wait changes nothing.
  bool IsIdle() const { return long_waits_ == 0; }

  // The core for a sleep that begins now; -1: any.
  int CoreAt(int64_t now_ns) const {
    return on_ && now_ns - requested_ns_ < kSharesForNs ? PeerCore() : -1;
  }

  // The side will sleep on this core; -1: it does not, or no longer.
  void Tell(int core) {
    if (own_ != nullptr) StoreIfOther(own_, static_cast<uint32_t>(core) + 1);
  }

  // A wait of this length has ended with a request. Returns true if it turned
  // the sharing off.
  bool Waited(int64_t length_ns, bool slept, int64_t now_ns) {
    if (peer_ == nullptr) return false;
    requested_ns_ = now_ns;
    const int change = slept && length_ns >= kLongNs ? 1 : -1;
    long_waits_ = std::clamp(long_waits_ + change, 0, kWaitsToChange);
    if (long_waits_ == kWaitsToChange) on_ = true;
    if (long_waits_ != 0 || !on_) return false;
    on_ = false;
    return true;
  }

 private:
  int PeerCore() const {
    // relaxed: a hint.
    return static_cast<int>(peer_->load(std::memory_order_relaxed) - 1);
  }

  const SharedWord<uint32_t>* peer_ = nullptr;  // null: shares no core
  SharedWord<uint32_t>* own_ = nullptr;
  bool on_ = false;
  int long_waits_ = 0;        // more than others
  int64_t requested_ns_ = 0;  // the end of the last wait
};

}  // namespace tandem
