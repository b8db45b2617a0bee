// NamedFile: a file in shared memory that is born whole and dies cleanly.
//
// Data flow: Reserve -> an unnamed file -> filled by its owner -> LinkOver
// gives it its name -> destruction takes the name away again. Ownership: one
// process. The file has a second hard link (SpareLinkPath), by which
// RestoreName restores a name that was unlinked, and by which the dead
// are found (dead_region.h).
//
//   absl::StatusOr<NamedFile> file = NamedFile::Reserve("demo", 4096, {});
//   ... fill it ...
//   absl::StatusOr<bool> linked = file->LinkOver(RemoveDead);

#ifndef TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_

#include <cstdint>
#include <functional>
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

  // Gives it its name, some attempts long: before each, `remove_dead` takes
  // away what has it and is dead, or says why it cannot. False: something else
  // was faster each time.
  absl::StatusOr<bool> LinkOver(
      const std::function<absl::Status()>& remove_dead);

  // Restores the name if it was unlinked (Python's resource tracker does,
  // at the exit of a process that attached without track=False). Leaves a name
  // alone that leads elsewhere by now. One system call when all is well;
  // allocates nothing.
  void RestoreName() const;

  // Takes its name away. Safe twice.
  void Unlink();

  // Takes the name away and changes nothing else, for a process that is about
  // to end without destroying this. From any thread. Does nothing in a forked
  // child.
  void RemoveName() const;

  // False in a forked child, and once moved from.
  bool IsOurs() const;
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }

 private:
  NamedFile(absl::string_view name, UniqueFd fd);
  // False: something else has the name, or its spare link.
  absl::StatusOr<bool> TryLink();

  std::string name_;
  std::string path_;
  std::string spare_path_;
  UniqueFd fd_;
  uint32_t born_in_;  // ForkCount() of the owner
  bool linked_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_
