// GracePeriod: measures for how long the peer's words have been invalid.
//
// Data flow: a check of shared words fails -> Expired, after each failure ->
// true once they have been invalid for the whole period: the peer is broken.
// One failure proves nothing: a foreign writer may store a word byte by byte
// (Python's struct.pack_into zeroes it first).
//
//   if (IsValid(word)) grace.Clear();
//   else if (grace.Expired()) return kBroken;

#pragma once

#include <cstdint>

#include "base/clock.h"

namespace tandem {

// Not thread-safe. Neither blocks nor allocates.
class GracePeriod {
 public:
  explicit GracePeriod(int64_t grace_ns) : grace_ns_(grace_ns) {}
  // The caller found invalid words. Returns whether the period is over.
  bool Expired() {
    const int64_t now_ns = MonotonicNanos();
    if (since_ns_ < 0) since_ns_ = now_ns;
    return now_ns - since_ns_ >= grace_ns_;
  }
  // The caller found valid words; the period starts again.
  void Clear() { since_ns_ = -1; }

 private:
  int64_t grace_ns_;
  int64_t since_ns_ = -1;
};

}  // namespace tandem
