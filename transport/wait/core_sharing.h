// CoreSharing: whether a side that sleeps between two requests sleeps on its
// peer's core.
//
// Data flow: lengths of waits -> on or off. docs/waiting.md gives the reasons.
//
// In lock-step only one of the two sides computes at a time. A peer that
// computes for long between two requests has let this side fall asleep; a wake
// on the peer's core takes about 1 us, on an idle one 25 to 100 us. A peer that
// asks again at once is faster on a core of its own.
//
//  state  left when
//  off    kLongWaitsToShare sleeping waits in a row of kLongNs or more: on
//  on     kQuickWaitsToPart waits in a row of less than kQuickNs: off
//
//   CoreSharing sharing;
//   if (sharing.on()) ... sleep on the peer's core ...
//   sharing.Waited(length_ns, slept);

#ifndef TANDEM_TRANSPORT_WAIT_CORE_SHARING_H_
#define TANDEM_TRANSPORT_WAIT_CORE_SHARING_H_

#include <cstdint>

namespace tandem {

// Not thread-safe; no call blocks, allocates or makes a system call.
class CoreSharing {
 public:
  static constexpr int64_t kLongNs = 100'000;
  static constexpr int64_t kQuickNs = 25'000;
  static constexpr int kLongWaitsToShare = 4;
  static constexpr int kQuickWaitsToPart = 16;

  bool on() const { return on_; }

  // A wait of this length has ended with a request. Returns true if it turned
  // the sharing off.
  bool Waited(int64_t length_ns, bool slept) {
    const bool against =
        on_ ? length_ns < kQuickNs : slept && length_ns >= kLongNs;
    in_a_row_ = against ? in_a_row_ + 1 : 0;
    if (in_a_row_ < (on_ ? kQuickWaitsToPart : kLongWaitsToShare)) return false;
    in_a_row_ = 0;
    on_ = !on_;
    return !on_;
  }

 private:
  bool on_ = false;
  int in_a_row_ = 0;  // waits that speak for the other state
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_CORE_SHARING_H_
