// SharedRegion: memory that processes share by its name: a region, or a
// segment of frames.
//
// Data flow: Create -> memory without a name -> its owner fills it -> Publish
// -> other processes Open it by the name -> Unpublish.
// Ownership: the object owns this process's access, not the memory. The memory
// exists as long as a name leads to it, or a process has access or a mapping.
//
// On Linux it is a file in /dev/shm with a second hard link, the spare link: by
// it an owner restores a name that another program unlinked, and later engines
// find the files of owners that died.
//
//   TANDEM_ASSIGN_OR_RETURN(
//       const SharedRegion region,
//       SharedRegion::Open("demo", SharedRegion::Access::kWrite));
//   TANDEM_RETURN_IF_ERROR(region.CheckTrust("demo"));

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/current_user.h"
#include "base/os/unique_fd.h"

namespace tandem {

// Move-only. Thread-safe but for moves. Names must be valid in a path; the
// caller checks them. No call waits for another process.
class SharedRegion {
 public:
  enum class Access : uint8_t { kRead, kWrite };
  // The two links of a file.
  enum class Link : uint8_t { kName, kSpare };

  // Equal for two objects only if they lead to the same memory.
  struct Id {
    uint64_t device = 0;
    uint64_t inode = 0;
    friend auto operator<=>(const Id&, const Id&) = default;
  };

  // Parts of the error text for memory without room.
  struct Texts {
    absl::string_view what;     // "the region"
    absl::string_view smaller;  // "use fewer environments"
  };

  // kOutOfSharedMemory, as of Create: the size exceeds the free space of
  // /dev/shm, the free memory (to reserve more would start the OOM killer), or
  // the limit on file sizes. kSystemCallFailed: there is no /dev/shm.
  static absl::Status CheckRoom(uint64_t bytes, const Texts& texts);

  // Reserves `bytes` of zeroes without a name, for this user; with group
  // access, also for the user's group. kOutOfSharedMemory: the text has the
  // needed and the available bytes.
  static absl::StatusOr<SharedRegion> Create(uint64_t bytes, bool group_access,
                                             const Texts& texts);

  // Opens what another process made. Follows no link. Errors:
  //   kNotReady        there is none; the text has the place
  //   kAccessDenied    this user may not open it; the text names its owner
  //   kLayoutMismatch  a link, a folder, a FIFO or a device
  static absl::StatusOr<SharedRegion> Open(absl::string_view name,
                                           Access access,
                                           Link link = Link::kName);

  // Returns another access to the memory of a handle() that this process has
  // or inherited. kSystemCallFailed: it leads to none.
  static absl::StatusOr<SharedRegion> OfHandle(int handle);

  // To what a name leads, and who owns that: nullopt if nowhere. One system
  // call.
  static std::optional<Id> At(absl::string_view name, Link link = Link::kName);
  static std::optional<Owner> OwnerAt(absl::string_view name, Link link);

  // A file in the folder of regions; it may be any program's.
  struct Listed {
    std::string name;
    Link link;  // that was found
  };
  // Returns all, in no order; empty if the folder is unreadable.
  static std::vector<Listed> List();

  // Copies bytes; returns false if the memory ends before them. A word that
  // another process stores at this time may be torn. Never faults, also if the
  // memory was truncated. One system call.
  bool Read(uint64_t offset, void* into, size_t bytes) const;

  // OK if this user may trust the owner, as current_user.h defines it.
  // Otherwise kAccessDenied with the owner's name: that user could truncate the
  // memory while it is mapped. The check ignores whether this process can open
  // it, since root can open all.
  absl::Status CheckTrust(absl::string_view name) const;

  // Gives the memory its name: first the spare link, so that it is found if
  // this process dies at once, then the name. Returns false if other memory has
  // one of them.
  absl::StatusOr<bool> Publish(absl::string_view name) const;

  // Restores the name from the spare link if it leads nowhere. Makes one system
  // call if it leads somewhere; allocates nothing.
  void Restore(absl::string_view name) const;

  // Removes both links, the spare link last: after an error it is left, for
  // later engines to find. Does not touch one that leads to other memory, or
  // nowhere.
  absl::Status Unpublish(absl::string_view name) const;

  // Maps `bytes` from the start. For kWrite requests huge pages if available,
  // and touches every page, so that no step has a page fault; else touches
  // none: the first read of a page may block. kSystemCallFailed.
  absl::StatusOr<std::byte*> Map(uint64_t bytes, Access access) const;
  static void Unmap(std::byte* base, uint64_t bytes);
  // How many bytes of the mapping at `base` huge pages back now. Reads a file.
  static uint64_t HugePageBytes(const std::byte* base);

  // As of the object's creation.
  uint64_t bytes() const { return bytes_; }
  const Id& id() const { return id_; }
  const Owner& owner() const { return owner_; }
  // A descriptor, for child processes; valid as long as this object.
  int handle() const { return fd_.get(); }

 private:
  SharedRegion(UniqueFd fd, uint64_t bytes, const Id& id, const Owner& owner)
      : fd_(std::move(fd)), bytes_(bytes), id_(id), owner_(owner) {}
  static absl::StatusOr<SharedRegion> Of(UniqueFd fd);
  // kAccessDenied with the owner's name.
  static absl::Status NotMine(absl::string_view name, const Owner& owner,
                              absl::string_view why = "");

  UniqueFd fd_;
  uint64_t bytes_;
  Id id_;
  Owner owner_;
};

// Returns "/dev/shm/demo", or "/dev/shm/.demo.tandem", for error texts. No
// legal name has the path of a spare link.
std::string RegionPath(absl::string_view name,
                       SharedRegion::Link link = SharedRegion::Link::kName);

}  // namespace tandem
