// GracePeriod: since when the other side's words cannot be.
//
// Data flow: a check of shared words fails -> Expired, each time, until they
// have been impossible for too long -> the other side counts as broken. A
// foreign writer may store a word byte by byte (Python's struct.pack_into
// clears it first), so that one read proves nothing.
//
//   if (IsPossible(word)) grace.Clear();
//   else if (grace.Expired()) return kBroken;

#ifndef TANDEM_TRANSPORT_BASE_GRACE_PERIOD_H_
#define TANDEM_TRANSPORT_BASE_GRACE_PERIOD_H_

#include <cstdint>

#include "transport/base/clock.h"

namespace tandem {

// Not thread-safe. Neither blocks nor allocates.
class GracePeriod {
 public:
  explicit GracePeriod(int64_t grace_ns) : grace_ns_(grace_ns) {}
  // They cannot be: has that been so for long enough?
  bool Expired() {
    const int64_t now_ns = MonotonicNanos();
    if (since_ns_ < 0) since_ns_ = now_ns;
    return now_ns - since_ns_ >= grace_ns_;
  }
  // They can.
  void Clear() { since_ns_ = -1; }

 private:
  int64_t grace_ns_;
  int64_t since_ns_ = -1;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_GRACE_PERIOD_H_
