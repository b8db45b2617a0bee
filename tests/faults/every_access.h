// EveryAccess: stops victims before each of their accesses to shared memory and
// each of their system calls.
//
// Data flow: a stopped victim -> its mappings of /dev/shm are protected, so
// that each access raises SIGSEGV, which stops it -> the test kills or freezes
// it there. The accesses that are no stops are let through, one by one.
//
// These are all points that differ. Another process learns of a victim only
// from the victim's stores to shared memory and from its system calls (locks,
// futex(2)). So between two of them no other process can tell two instructions
// apart, and a kill has the same effect at each. The point after a store is the
// point before the next one or before a system call. A frozen victim can also
// be misled: others write while it stands between two of its loads. So victims
// to be frozen stop at loads, too.
//
//   EveryAccess accesses(EveryAccess::kStores);
//   bool within = true;
//   while (within) {
//     Victim victim(body);
//     victim.RunToMark();
//     within = accesses.AdvanceToNew(victim);
//     victim.Kill();
//     ... checks ...
//   }

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "tests/faults/victim.h"

namespace tandem {

// Remembers places, not ordinal numbers: a wait makes any number of accesses.
// So a spin is one place, a loop of system calls has the first four of them,
// and a victim that sleeps where earlier ones did not adds places. The victims
// are forks of one process and have one thread.
class EveryAccess {
 public:
  // System calls belong to both.
  enum Kind { kStores, kLoadsAndStores };

  // The number of the victim's earlier stores to shared memory; the address of
  // the instruction; then the offset of the byte in its mapping. Of a system
  // call: the address of the stack, and the number of such calls.
  using Place = std::vector<uint64_t>;

  // On ARM64 with the atomic instructions of version 8.1: between a load and a
  // store of the older ones the processor may not stop.
#if defined(__x86_64__) || defined(__aarch64__)
  static constexpr bool kSupported = true;
#else
  static constexpr bool kSupported = false;
#endif

  // `nth`: stops at every `nth` of the places, 1 at each.
  explicit EveryAccess(Kind kind, size_t nth = 1) : kind_(kind), nth_(nth) {}

  // Runs a stopped victim up to just before its first access or system call at
  // a place that no call has reached, or up to the `nth` of them. False: there
  // is none, and the victim is at its next mark or has exited; or, for a victim
  // without a further mark, `done` has held for 100 of them.
  bool AdvanceToNew(Victim& victim, const std::function<bool()>& done = {});

  // The number of places that it has reached.
  size_t places() const { return places_.size(); }

 private:
  // Remembers it. Whether the victim is to stop there.
  bool IsStop(const Place& place) {
    return places_.insert(place).second && places_.size() % nth_ == 0;
  }

  const Kind kind_;
  const size_t nth_;
  std::set<Place> places_;
};

}  // namespace tandem
