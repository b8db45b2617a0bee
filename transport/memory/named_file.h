// NamedFile: a file in shared memory that is born whole and dies cleanly.
//
// Data flow: Reserve -> an unnamed file -> filled by its owner -> TryLink gives
// it its name -> destruction takes the name away again.
// Ownership: one process. The file has a second hard link (SpareLinkPath), by
// which RestoreName brings back a name that somebody unlinked, and by which
// the dead are found (dead_region.h).
//
//   absl::StatusOr<NamedFile> file = NamedFile::Reserve("demo", 4096, {});
//   ... fill it ...
//   absl::StatusOr<bool> linked = file->TryLink();

#ifndef TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace tandem {

// Move-only. In a forked child nothing is linked or unlinked.
class NamedFile {
 public:
  // What error texts say of a file that does not fit.
  struct Texts {
    absl::string_view what;     // "the region"
    absl::string_view smaller;  // "use fewer environments"
  };

  // An unnamed file of `bytes` zeroes whose memory is reserved, mode 0600 or,
  // with group access, 0660. `name` is one that a path can be made of.
  // kOutOfSharedMemory: needed, available.
  static absl::StatusOr<NamedFile> Reserve(absl::string_view name,
                                           uint64_t bytes, bool group_access,
                                           const Texts& texts);

  NamedFile(NamedFile&& other) noexcept;
  NamedFile& operator=(NamedFile&& other) noexcept;
  ~NamedFile() { Unlink(); }

  // Gives it its name. False: something else has it, or its spare link.
  absl::StatusOr<bool> TryLink();

  // Puts the name back if somebody unlinked it (Python's resource tracker does,
  // at the exit of a process that attached without track=False). Leaves a name
  // alone that leads elsewhere by now. One system call when all is well;
  // allocates nothing.
  void RestoreName() const;

  // Takes its name away. Safe twice.
  void Unlink();

  // False in a forked child, and once moved from.
  bool IsOurs() const;
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }

 private:
  NamedFile(absl::string_view name, UniqueFd fd);

  std::string name_;
  std::string path_;
  std::string spare_path_;
  UniqueFd fd_;
  uint32_t born_in_;  // ForkCount() of the owner
  bool linked_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_
