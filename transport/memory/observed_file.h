// ObservedFile: read-only access to a region or a segment of frames, for
// monitoring.
//
// Data flow: a name in /dev/shm -> a descriptor for reading -> bytes, copied,
// and the kernel's word on locks.
// Ownership: the observer's. It maps nothing, so that a file that is truncated
// meanwhile is a short read and no SIGBUS; it locks nothing and writes nothing,
// so that no side notices it. Reading is safe whatever the file contains, and
// whether its owner lives or not.
//
//   absl::StatusOr<ObservedFile> file = ObservedFile::Open("demo");
//   LrbcHeader header;
//   if (!file->Read(0, &header, sizeof(header))) return TooShort();
//   file->IsLocked(kEngineLockByte);  // the engine lives

#ifndef TANDEM_TRANSPORT_MEMORY_OBSERVED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_OBSERVED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/memory/shared_file.h"

namespace tandem {

// Move-only. No call blocks or allocates, but for Open.
class ObservedFile {
 public:
  // By a region's name or a segment's full one; where that name is gone, by
  // its spare link. Errors:
  //   kInvalidArgument  no name of either
  //   kNotReady         there is no such file
  //   kLayoutMismatch   it is a link, a folder or a device
  //   kAccessDenied     this user may not read it; its owner is named
  static absl::StatusOr<ObservedFile> Open(absl::string_view name);

  // Copies bytes; false if the file ends before them. A word that its writer
  // stores meanwhile may be torn. One system call.
  bool Read(uint64_t offset, void* into, size_t bytes) const;

  // As tandem::IsLocked.
  std::optional<bool> IsLocked(int64_t byte) const;

  // As tandem::CheckTrust, of the file with that name.
  absl::Status CheckTrust(absl::string_view name) const {
    return tandem::CheckTrust(name, file_.status);
  }

  // As of Open.
  uint64_t bytes() const { return static_cast<uint64_t>(file_.status.st_size); }
  uint64_t device() const { return file_.status.st_dev; }
  uint64_t inode() const { return file_.status.st_ino; }
  // A program of ours made it: its spare link leads to it.
  bool has_spare_link() const { return has_spare_link_; }
  // It was found by its spare link only: its name was removed.
  bool name_gone() const { return name_gone_; }

 private:
  explicit ObservedFile(SharedFile file) : file_(std::move(file)) {}

  SharedFile file_;
  bool has_spare_link_ = false;
  bool name_gone_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_OBSERVED_FILE_H_
