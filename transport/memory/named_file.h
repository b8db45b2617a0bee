// NamedFile: a file in shared memory. Its owner reserves, maps, locks and fills
// it, and then gives it a name. The name exists as long as the owner.
//
// Data flow: Reserve -> an unnamed file, mapped and locked -> its owner fills
// it -> LinkOver gives it a name -> the destructor removes the name.
// Ownership: one process. The file gets its name last, so no other process sees
// an incomplete file. Its lock is held from before it has a name until the
// process ends, so no process takes a live file. The file has a second hard
// link (SpareLinkPath): RestoreName uses it to restore an unlinked name, and
// dead_region.h to find dead files.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"
#include "transport/memory/region_lock.h"
#include "transport/region.h"

namespace tandem {

// Move-only. In a forked child it links and unlinks nothing.
class NamedFile {
 public:
  // Parts of the error text for a file without room.
  struct Texts {
    absl::string_view what;     // "the region"
    absl::string_view smaller;  // "use fewer environments"
  };

  // kOutOfSharedMemory, as of Reserve: the size exceeds the free space of
  // /dev/shm, the free memory (to reserve more would start the OOM killer), or
  // the limit on file sizes. kSystemCallFailed: there is no /dev/shm.
  static absl::Status CheckRoom(uint64_t bytes, const Texts& texts);

  // Makes an unnamed file of `bytes` zeroes, reserves and touches its memory,
  // and locks kEngineLockByte. Its mode is 0600; with group access, 0660.
  // `name` must be valid in a path. kOutOfSharedMemory: the text has the needed
  // and the available bytes.
  static absl::StatusOr<NamedFile> Reserve(absl::string_view name,
                                           uint64_t bytes, bool group_access,
                                           const Texts& texts);

  NamedFile(NamedFile&&) noexcept = default;
  NamedFile& operator=(NamedFile&&) = delete;
  // Removes the name, then unlocks the file.
  ~NamedFile() { RemoveName(); }

  // Replaces the name, before LinkOver.
  void Rename(absl::string_view name);

  // Gives the file its name, in several attempts. Before each, `remove_dead`
  // removes a dead file with the name, or returns an error. Returns false if
  // another process took the name first in each attempt.
  absl::StatusOr<bool> LinkOver(
      const std::function<absl::Status()>& remove_dead);

  // Restores the name if it was unlinked. Python's resource tracker unlinks it
  // when a process ends that attached without track=False. Does not change a
  // name that leads to another file. Makes one system call in the normal case;
  // allocates nothing.
  void RestoreName() const;

  // Removes the name and changes nothing else. For a process that will end
  // without this destructor. Any thread may call it. Does nothing in a forked
  // child.
  void RemoveName() const;

  // False in a forked child, and after a move from this object.
  bool IsOurs() const { return lock_.IsOurs(); }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return mapping_;
  }
  const RegionLock& lock() const { return lock_; }
  // Of the file, for processes that map it; not the lock's. Valid as long as
  // this object.
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }

 private:
  NamedFile(absl::string_view name, UniqueFd fd,
            std::shared_ptr<const RegionMapping> mapping, RegionLock lock);
  // Returns false if another file has the name, or its spare link.
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
