// NamedFile: a file in shared memory that its owner reserves, maps, locks,
// fills and then gives its name, and whose name goes with the owner.
//
// Data flow: Reserve -> an unnamed file, mapped and locked -> filled by its
// owner -> LinkOver gives it its name -> destruction takes the name away again.
// Ownership: one process. No other process sees an incomplete file, since it
// gets its name last. No process takes a live one, since its lock is held from
// before it has a name until the process is gone. The file has a second hard
// link (SpareLinkPath), by which RestoreName restores a name that was unlinked,
// and by which the dead are found (dead_region.h).
//
//   absl::StatusOr<NamedFile> file = NamedFile::Reserve("demo", 4096, {});
//   ... fill file->mapping() ...
//   absl::StatusOr<bool> linked = file->LinkOver(RemoveDead);

#ifndef TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_mapping.h"

namespace tandem {

// Move-only. In a forked child nothing is linked or unlinked.
class NamedFile {
 public:
  // What error texts say of a file that does not fit.
  struct Texts {
    absl::string_view what;     // "the region"
    absl::string_view smaller;  // "use fewer environments"
  };

  // An unnamed file of `bytes` zeroes whose memory is reserved and touched,
  // mode 0600 or, with group access, 0660; kEngineLockByte is locked. `name` is
  // one that a path can be made of. kOutOfSharedMemory: needed, available.
  static absl::StatusOr<NamedFile> Reserve(absl::string_view name,
                                           uint64_t bytes, bool group_access,
                                           const Texts& texts);

  NamedFile(NamedFile&&) noexcept = default;
  NamedFile& operator=(NamedFile&&) = delete;
  // Takes the name away, then unlocks the file.
  ~NamedFile() { RemoveName(); }

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

  // Takes the name away and changes nothing else, for a process that is about
  // to end without destroying this. From any thread. Does nothing in a forked
  // child.
  void RemoveName() const;

  // False in a forked child, and once moved from.
  bool IsOurs() const { return lock_.IsOurs(); }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return mapping_;
  }
  const RegionLock& lock() const { return lock_; }
  const std::string& name() const { return name_; }

 private:
  NamedFile(absl::string_view name, UniqueFd fd,
            std::shared_ptr<const RegionMapping> mapping, RegionLock lock);
  // False: something else has the name, or its spare link.
  absl::StatusOr<bool> TryLink();

  std::string name_;
  std::string path_;
  std::string spare_path_;
  UniqueFd fd_;
  std::shared_ptr<const RegionMapping> mapping_;
  RegionLock lock_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_NAMED_FILE_H_
