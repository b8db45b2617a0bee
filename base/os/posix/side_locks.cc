#include "base/os/side_locks.h"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "base/error.h"
#include "base/os/posix/guarded_descriptors.h"
#include "base/os/posix/region_memory.h"

namespace tandem {
namespace {

struct flock WholeByte(int64_t byte, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return range;
}

int Descriptor(intptr_t access) { return static_cast<int>(access); }

std::optional<bool> IsByteLocked(int fd, int64_t byte) {
  struct flock range = WholeByte(byte, F_WRLCK);
  if (fcntl(fd, F_OFD_GETLK, &range) != 0) return std::nullopt;
  return range.l_type != F_UNLCK;
}

}  // namespace

std::optional<bool> IsLocked(const SharedRegion& region, int64_t byte) {
  return IsByteLocked(region.handle(), byte);
}

absl::StatusOr<SideLocks> SideLocks::On(const SharedRegion& region) {
  const std::string path = PathToReopen(region.handle());
  const int own = OpenGuarded(path.c_str());
  if (own < 0) return MakeSystemError("open", path, errno);
  return SideLocks(own);
}

bool SideLocks::TryAcquire(int64_t byte) {
  if (!IsOurs()) return false;
  struct flock range = WholeByte(byte, F_WRLCK);
  return fcntl(Descriptor(access_), F_OFD_SETLK, &range) == 0;
}

bool SideLocks::TryShare(int64_t byte) {
  if (!IsOurs()) return false;
  struct flock range = WholeByte(byte, F_RDLCK);
  return fcntl(Descriptor(access_), F_OFD_SETLK, &range) == 0;
}

bool SideLocks::HeldByOther(int64_t byte) const {
  if (!IsOurs()) return false;
  // Only a definite answer of the kernel counts as a death.
  return IsByteLocked(Descriptor(access_), byte).value_or(true);
}

void SideLocks::Release() {
  // In a forked child the handler closed the descriptor, and its number may
  // belong to another file now.
  if (IsOurs()) CloseGuarded(Descriptor(access_));
  access_ = kNone;
}

}  // namespace tandem
