#include "viz/testing/readers_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

#include "base/os/unique_fd.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"

namespace tandem {

uint64_t RingOffset(int fd) {
  uint32_t magic = 0;
  uint64_t offset = 0;
  if (pread(fd, &magic, sizeof(magic), 0) != sizeof(magic) ||
      magic != kLrbcMagic ||
      pread(fd, &offset, sizeof(offset), offsetof(LrbcHeader, flan_offset)) !=
          sizeof(offset)) {
    return 0;
  }
  return offset;
}

bool ReadersLockHeld(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start =
      static_cast<off_t>(RingOffset(fd.get())) + kFlanReadersLockByte;
  lock.l_len = 1;
  return fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace tandem
