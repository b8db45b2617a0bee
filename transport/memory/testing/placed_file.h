// PlacedFile: a file in /dev/shm with bytes that a test chooses, such as those
// of a region whose engine died.
//
// Data flow: bytes -> the file, with or without a spare link -> the code under
// test.
// Ownership: the test; destruction removes both names.
//
// Any engine that starts on the machine may take a file with a spare link for a
// dead region and remove it. A file with a spare link is thus locked as by a
// living engine. A dead region has no spare link.
//
//   PlacedFile file(UniqueRegionName("report"), header_bytes,
//                   PlacedFile::kDead);
//   file.WriteWord(offsetof(LrbcHeader, num_envs), uint32_t{7});

#ifndef TANDEM_TRANSPORT_MEMORY_TESTING_PLACED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_TESTING_PLACED_FILE_H_

#ifdef _WIN32
#include "transport/memory/testing/placed_section.h"
#else

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"

namespace tandem {

// Aborts on errors that no test expects.
class PlacedFile {
 public:
  enum State {
    kAlive,  // An engine's lock, and a spare link.
    kDead,   // Neither lock nor spare link.
  };
  PlacedFile(std::string name, absl::string_view bytes, State state)
      : name_(std::move(name)),
        fd_(open(path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (!fd_.valid()) std::abort();
    Write(0, bytes);
    if (state == kDead) return;
    Lock(kEngineLockByte);
    if (link(path().c_str(),
             RegionPath(name_, SharedRegion::Link::kSpare).c_str()) != 0)
      std::abort();
  }
  PlacedFile(const PlacedFile&) = delete;
  PlacedFile& operator=(const PlacedFile&) = delete;
  ~PlacedFile() {
    unlink(path().c_str());
    unlink(RegionPath(name_, SharedRegion::Link::kSpare).c_str());
  }

  const std::string& name() const { return name_; }
  std::string path() const { return RegionPath(name_); }

  void Write(uint64_t offset, absl::string_view bytes) {
    if (pwrite(fd_.get(), bytes.data(), bytes.size(),
               static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }
  template <typename Word>
  void WriteWord(uint64_t offset, Word word) {
    Write(offset, {reinterpret_cast<const char*>(&word), sizeof(word)});
  }
  void Resize(uint64_t bytes) {
    if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  }
  // The complete content.
  std::string Bytes() const {
    struct stat about = {};
    if (fstat(fd_.get(), &about) != 0) std::abort();
    std::string bytes(static_cast<size_t>(about.st_size), '\0');
    if (pread(fd_.get(), bytes.data(), bytes.size(), 0) !=
        static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
    return bytes;
  }

  // Holds a lock as a living side does, until destruction.
  void Lock(int64_t byte) { SetLock(byte, F_WRLCK); }
  void Unlock(int64_t byte) { SetLock(byte, F_UNLCK); }

 private:
  void SetLock(int64_t byte, short type) {
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = 1;
    if (fcntl(fd_.get(), F_OFD_SETLK, &range) != 0) std::abort();
  }

  std::string name_;
  UniqueFd fd_;
};

}  // namespace tandem

#endif  // _WIN32
#endif  // TANDEM_TRANSPORT_MEMORY_TESTING_PLACED_FILE_H_
