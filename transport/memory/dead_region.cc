#include "transport/memory/dead_region.h"

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/current_user.h"
#include "base/os/shared_region.h"
#include "base/os/side_locks.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"

namespace tandem {
namespace {

// Returns a copy of the header if the file is a region that uses locks.
bool ReadLockedRegion(const SharedRegion& memory, LrbcHeader* header) {
  return memory.Read(0, static_cast<void*>(header), sizeof(*header)) &&
         header->magic == kLrbcMagic &&
         (header->feature_bits & kFeatureSession) != 0;
}

constexpr char kMakeRoom[] =
    "remove it if nothing needs it (on Windows, end the program that has it), "
    "or choose another name";

absl::Status InTheWay(const std::string& path, absl::string_view what,
                      absl::string_view then) {
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("expected no live region at ", path, ", found ",
                                what, "; ", then));
}

// The files that count as dead if no process holds their lock.
enum class Judge { kLockedRegions, kAnyFileOfOurs };

// Removes the dead region to which one of the two links of `name` leads, and
// its other link.
absl::Status RemoveAt(absl::string_view name, SharedRegion::Link link,
                      Judge judge) {
  const std::string path = RegionPath(name, link);
  const absl::StatusOr<SharedRegion> opened =
      SharedRegion::Open(name, SharedRegion::Access::kWrite, link);
  switch (CodeOf(opened.status())) {
    case ErrorCode::kOk:
      break;
    case ErrorCode::kNotReady:
      return absl::OkStatus();
    case ErrorCode::kLayoutMismatch:
      return InTheWay(path, "an object of another kind, such as a folder",
                      kMakeRoom);
    default:
      return opened.status();
  }
  LrbcHeader header = {};
  // A spare link leads to a region, even if the file was truncated since.
  const bool is_ours_by_name =
      (judge == Judge::kAnyFileOfOurs || link == SharedRegion::Link::kSpare) &&
      IsCurrentUser(opened->owner());
  if (!ReadLockedRegion(*opened, &header) && !is_ours_by_name) {
    return InTheWay(path, "memory without the lock of a Tandem engine",
                    kMakeRoom);
  }
  TANDEM_ASSIGN_OR_RETURN(auto lock, SideLocks::On(*opened));
  if (!lock.TryAcquire(kEngineLockByte)) {
    return InTheWay(
        path,
        header.magic == kLrbcMagic
            ? absl::StrCat("the engine with pid ",
                           // relaxed: a label, in a private copy.
                           header.server_pid.load(std::memory_order_relaxed))
            : "a live writer of frames",
        "stop it, or choose another name");
  }
  // The region is dead, and this process holds its lock. After a crash between
  // the two links the next engine's start still finds the spare link.
  return opened->Unpublish(name);
}

absl::Status RemovePatiently(absl::string_view name, Judge judge) {
  // Another engine's RemoveDeadRegions holds a dead region's lock for an
  // instant.
  constexpr int kAttempts = 10;
  constexpr std::chrono::milliseconds kPause(1);
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    // The spare link first: a live engine whose name was just unlinked still
    // has it; and it leads to a dead region that was truncated.
    status = RemoveAt(name, SharedRegion::Link::kSpare, judge);
    if (status.ok()) status = RemoveAt(name, SharedRegion::Link::kName, judge);
    if (CodeOf(status) != ErrorCode::kAlreadyAttached) break;
  }
  return status;
}

}  // namespace

absl::Status RemoveIfDead(absl::string_view name) {
  return RemovePatiently(name, Judge::kLockedRegions);
}

absl::Status RemoveUnlessLocked(absl::string_view name) {
  return RemovePatiently(name, Judge::kAnyFileOfOurs);
}

void RemoveDeadRegions() {
  constexpr auto kSpare = SharedRegion::Link::kSpare;
  for (const auto& [name, link] : SharedRegion::List()) {
    if (link != kSpare || !IsSharedName(name)) continue;
    const std::optional<Owner> owner = SharedRegion::OwnerAt(name, kSpare);
    if (!owner.has_value() || !IsCurrentUser(*owner)) continue;
    RemoveAt(name, kSpare, Judge::kLockedRegions)
        .IgnoreError();  // alive, or its state is unknown
  }
}

}  // namespace tandem
