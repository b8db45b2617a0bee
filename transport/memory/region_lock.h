// RegionLock: a file lock by which a side shows that it lives.
//
// Data flow: a side locks its byte of the region's file; the kernel unlocks it
// when the process ends for any reason; the other side queries the kernel.
// Ownership: it owns an open file description that is never mapped, since a
// mapping would keep the lock after close. A forked child closes it.
//
//   absl::StatusOr<RegionLock> lock = RegionLock::On(region_fd);
//   lock->TryAcquire(kClientLockByte);   // true: this process has it now
//   lock->HeldByOther(kEngineLockByte);  // true: the engine lives

#ifndef TANDEM_TRANSPORT_MEMORY_REGION_LOCK_H_
#define TANDEM_TRANSPORT_MEMORY_REGION_LOCK_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace tandem {

// Whether an open file description other than that of `fd` holds or shares the
// byte; nullopt if the kernel reports an error. `fd` may be open for reading
// only. Locks nothing. One system call of 1 to 2 us; does not block.
std::optional<bool> IsLocked(int fd, int64_t byte);

// Move-only. Several threads may call HeldByOther and IsOurs at the same time,
// while no thread makes another call. In a forked child every call returns
// false, and the destructor closes nothing.
class RegionLock {
 public:
  // Opens the file of `fd` again. kSystemCallFailed if /proc is missing.
  static absl::StatusOr<RegionLock> On(int fd);

  RegionLock(RegionLock&& other) noexcept;
  RegionLock& operator=(RegionLock&& other) noexcept;
  ~RegionLock() { Release(); }

  // Locks the byte exclusively; returns false if another description holds it.
  // One system call; does not block.
  bool TryAcquire(int64_t byte);

  // Locks the byte shared; returns false if another description holds it
  // exclusively. One system call; does not block.
  bool TryShare(int64_t byte);

  // Whether another open file description, in any process, holds or shares the
  // byte. One system call of 1 to 2 us; does not block.
  bool HeldByOther(int64_t byte) const;

  // False in a forked child, and after a move from this object.
  bool IsOurs() const;

  // Unlocks all bytes. A second call has no effect.
  void Release();

 private:
  explicit RegionLock(int fd);

  int fd_;            // from OpenGuarded, or -1
  uint32_t born_in_;  // ForkCount() of the owner
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_LOCK_H_
