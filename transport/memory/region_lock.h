// RegionLock: the kernel's word on whether a side is alive.
//
// Data flow: a side locks its byte of the region's file; the kernel unlocks it
// when the process is gone, however it went; the other side asks the kernel.
// Ownership: an open file description of its own, which is never mapped (a
// mapping would keep the lock after close) and which a forked child closes.
//
//   absl::StatusOr<RegionLock> lock = RegionLock::On(region_fd);
//   lock->TryAcquire(kClientLockByte);     // true: the place is ours
//   lock->HeldByOther(kEngineLockByte);    // true: the engine lives

#ifndef TANDEM_TRANSPORT_MEMORY_REGION_LOCK_H_
#define TANDEM_TRANSPORT_MEMORY_REGION_LOCK_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace tandem {

// Whether an open file description other than that of `fd` holds or shares the
// byte; nothing if the kernel does not say. `fd` may be open for reading only;
// nothing is locked. One system call of 1 to 2 us; does not block.
std::optional<bool> IsLocked(int fd, int64_t byte);

// Move-only. Any threads may ask HeldByOther and IsOurs at a time, while none
// calls anything else. In a forked child every call answers false and
// destruction closes nothing.
class RegionLock {
 public:
  // Opens the file of `fd` once more. kSystemCallFailed where /proc is missing.
  static absl::StatusOr<RegionLock> On(int fd);

  RegionLock(RegionLock&& other) noexcept;
  RegionLock& operator=(RegionLock&& other) noexcept;
  ~RegionLock() { Release(); }

  // Locks the byte for this object; false if another description holds it.
  // One system call; does not block.
  bool TryAcquire(int64_t byte);

  // Shares the byte with others that share it; false if another description
  // has it for itself. One system call; does not block.
  bool TryShare(int64_t byte);

  // Whether another open file description, in whatever process, holds or shares
  // it. One system call of 1 to 2 us; does not block.
  bool HeldByOther(int64_t byte) const;

  // False in a forked child, and once moved from.
  bool IsOurs() const;

  // Unlocks everything. Safe twice.
  void Release();

 private:
  explicit RegionLock(int fd);

  int fd_;            // from OpenGuarded, or -1
  uint32_t born_in_;  // ForkCount() of the owner
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_LOCK_H_
