// NamedFile: a file in shared memory. Its owner reserves, maps, locks and fills
// it, and then gives it a name. The name exists as long as the owner.
//
// Data flow: Reserve -> an unnamed file, mapped and locked -> its owner fills
// it -> LinkOver gives it a name -> the destructor removes the name.
// Ownership: one process. The file gets its name last, so no other process sees
// an incomplete file. Its lock is held from before it has a name until the
// process ends, so no process takes a live file. The file has a second hard
// link (shared_region.h): RestoreName uses it to restore an unlinked name, and
// dead_region.h to find dead files.
//
//   absl::StatusOr<NamedFile> file = NamedFile::Reserve("demo", 4096, {});
//   ... fill file->mapping() ...
//   absl::StatusOr<bool> linked = file->LinkOver(RemoveDead);

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "base/os/side_locks.h"
#include "transport/region.h"

namespace tandem {

// Move-only. In a forked child it links and unlinks nothing.
class NamedFile {
 public:
  // As SharedRegion::Create; also maps and touches the memory, and locks
  // kEngineLockByte. `name` must be valid in a path.
  static absl::StatusOr<NamedFile> Reserve(absl::string_view name,
                                           uint64_t bytes, bool group_access,
                                           const SharedRegion::Texts& texts);

  NamedFile(NamedFile&&) noexcept = default;
  NamedFile& operator=(NamedFile&&) = delete;
  // Removes the name, then unlocks the file.
  ~NamedFile() { RemoveName(); }

  // Replaces the name, before LinkOver.
  void Rename(absl::string_view name) { name_ = std::string(name); }

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
  const SideLocks& lock() const { return lock_; }
  // For processes that map it. Valid as long as this object.
  const SharedRegion& memory() const { return memory_; }
  const std::string& name() const { return name_; }

 private:
  NamedFile(absl::string_view name, SharedRegion memory,
            std::shared_ptr<const RegionMapping> mapping, SideLocks lock)
      : name_(name),
        memory_(std::move(memory)),
        mapping_(std::move(mapping)),
        lock_(std::move(lock)) {}

  std::string name_;
  SharedRegion memory_;
  std::shared_ptr<const RegionMapping> mapping_;
  SideLocks lock_;
};

}  // namespace tandem
