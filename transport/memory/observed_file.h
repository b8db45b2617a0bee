// ObservedFile: read-only access to a region or a segment, for monitoring.
//
// Data flow: a name in /dev/shm -> a descriptor for reading -> copied bytes,
// and the state of locks.
// Ownership: the observer owns it. It maps nothing, so a truncated file causes
// a short read, not SIGBUS. It locks and writes nothing, so it has no effect on
// either side. Reading is safe with any content, and with a live or dead owner.
//
//   absl::StatusOr<ObservedFile> file = ObservedFile::Open("demo");
//   LrbcHeader header;
//   if (!file->Read(0, &header, sizeof(header))) return TooShort();
//   file->IsLocked(kEngineLockByte);  // the engine lives

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"

namespace tandem {

// Move-only. Only Open may allocate; no call blocks.
class ObservedFile {
 public:
  // Opens a region by its name, or a segment by its full name. If the name is
  // gone, opens the spare link. Errors:
  //   kInvalidArgument  not a valid name of either
  //   kNotReady         no such file
  //   kLayoutMismatch   a link, a folder or a device
  //   kAccessDenied     this user may not read it; the text names its owner
  static absl::StatusOr<ObservedFile> Open(absl::string_view name);

  // Copies bytes; returns false if the file ends before them. A word that the
  // writer stores at this time may be torn. Makes one system call.
  bool Read(uint64_t offset, void* into, size_t bytes) const {
    return memory_.Read(offset, into, bytes);
  }

  // As tandem::IsLocked.
  std::optional<bool> IsLocked(int64_t byte) const;

  // As SharedRegion's.
  absl::Status CheckTrust(absl::string_view name) const {
    return memory_.CheckTrust(name);
  }
  uint64_t bytes() const { return memory_.bytes(); }
  const SharedRegion::Id& id() const { return memory_.id(); }
  // Whether a Tandem program made it: its spare link leads to it.
  bool has_spare_link() const { return has_spare_link_; }
  // Whether Open found only the spare link: the name was removed.
  bool name_gone() const { return name_gone_; }

 private:
  explicit ObservedFile(SharedRegion memory) : memory_(std::move(memory)) {}

  SharedRegion memory_;
  bool has_spare_link_ = false;
  bool name_gone_ = false;
};

}  // namespace tandem
