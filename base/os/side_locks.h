// SideLocks: locks by which a side of a shared region shows that it lives.
//
// Data flow: a side locks its byte of the region; the kernel unlocks it when
// the process ends for any reason; the other side queries the kernel.
// Ownership: it owns an access to the memory that is never mapped. On Linux
// that is an open file description: a mapping would keep the lock after close.
// A forked child closes it.
//
//   absl::StatusOr<SideLocks> lock = SideLocks::On(region);
//   lock->TryAcquire(kClientLockByte);   // true: this process has it now
//   lock->HeldByOther(kEngineLockByte);  // true: the engine lives

#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "base/os/shared_region.h"

namespace tandem {

// Whether another access than that of `region` holds or shares the byte;
// nullopt if the kernel reports an error. Locks nothing. One system call of 1
// to 2 us; does not block.
std::optional<bool> IsLocked(const SharedRegion& region, int64_t byte);

// Move-only. Several threads may call HeldByOther and IsOurs at the same time,
// while no thread makes another call. In a forked child every call returns
// false, and the destructor closes nothing.
class SideLocks {
 public:
  // Makes another access. kSystemCallFailed; on Linux if /proc is missing.
  static absl::StatusOr<SideLocks> On(const SharedRegion& region);

  SideLocks(SideLocks&& other) noexcept;
  SideLocks& operator=(SideLocks&& other) noexcept;
  ~SideLocks() { Release(); }

  // Locks the byte exclusively; returns false if another access holds it.
  // One system call; does not block.
  bool TryAcquire(int64_t byte);

  // Locks the byte shared; returns false if another access holds it
  // exclusively. One system call; does not block.
  bool TryShare(int64_t byte);

  // Whether another access, in any process, holds or shares the byte. One
  // system call of 1 to 2 us; does not block.
  bool HeldByOther(int64_t byte) const;

  // False in a forked child, and after a move from this object.
  bool IsOurs() const;

  // Unlocks all bytes. A second call has no effect.
  void Release();

 private:
  static constexpr intptr_t kNone = -1;
  explicit SideLocks(intptr_t access);

  intptr_t access_;   // on Linux a descriptor from OpenGuarded; kNone
  uint32_t born_in_;  // ForkCount() of the owner
};

}  // namespace tandem
