// OpenAboveStandardStreams: open(2) for files that no print may reach.
//
// Data flow: none. A program may have closed standard streams. open(2) would
// give a file the number of one, and then each print would write into the file.
//
//   UniqueFd fd(OpenAboveStandardStreams(path, O_RDWR));
//   if (!fd.valid()) return MakeSystemError("open", path, errno);

#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

namespace tandem {

// Returns a descriptor of 3 or more with O_CLOEXEC; else -1 and errno as
// open(2). `mode` is for a new file. Makes one system call in the normal case.
inline int OpenAboveStandardStreams(const char* path, int flags,
                                    mode_t mode = 0) {
  const int fd = open(path, flags | O_CLOEXEC, mode);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return above;
}

}  // namespace tandem
