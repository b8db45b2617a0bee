// A lock is a named object: an event for one holder, a semaphore for several.
// The system removes it with its last handle, so at the end of its process.
#include "base/os/side_locks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/os/windows/native.h"
#include "base/os/windows/objects.h"

namespace tandem {
namespace {

std::wstring LockName(const std::string& object, int64_t byte) {
  return Wide(absl::StrCat(object, "-lock-", byte));
}

// A side's own locks.
struct Locks {
  struct Held {
    int64_t byte;
    UniqueFd lock;
    bool is_shared;
  };
  std::string object;  // the memory's, to which a lock's name appends
  bool group_access;
  std::vector<Held> held;
};

Locks& LocksOf(intptr_t access) { return *reinterpret_cast<Locks*>(access); }

const Locks::Held* Find(const Locks& locks, int64_t byte) {
  for (const Locks::Held& held : locks.held) {
    if (held.byte == byte) return &held;
  }
  return nullptr;
}

bool Exists(const std::wstring& lock) {
  // It is no mutex, so this opens nothing that would outlive its holder.
  const UniqueFd opened = Owned(OpenMutexW(SYNCHRONIZE, FALSE, lock.c_str()));
  return opened.valid() || GetLastError() != ERROR_FILE_NOT_FOUND;
}

}  // namespace

std::optional<bool> IsLocked(const SharedRegion& region, int64_t byte) {
  return Exists(LockName(ObjectName(region.id()), byte));
}

absl::StatusOr<SideLocks> SideLocks::On(const SharedRegion& region) {
  return SideLocks(reinterpret_cast<intptr_t>(
      new Locks{ObjectName(region.id()), region.owner().group_access, {}}));
}

bool SideLocks::TryAcquire(int64_t byte) {
  if (!IsOurs()) return false;
  Locks& locks = LocksOf(access_);
  if (const Locks::Held* const own = Find(locks, byte)) return !own->is_shared;
  ObjectAccess permissions(locks.group_access);
  UniqueFd made = Owned(CreateEventW(permissions.attributes(), TRUE, FALSE,
                                     LockName(locks.object, byte).c_str()));
  if (!made.valid() || GetLastError() == ERROR_ALREADY_EXISTS) return false;
  locks.held.push_back({byte, std::move(made), /*is_shared=*/false});
  return true;
}

bool SideLocks::TryShare(int64_t byte) {
  if (!IsOurs()) return false;
  Locks& locks = LocksOf(access_);
  if (const Locks::Held* const own = Find(locks, byte)) return own->is_shared;
  ObjectAccess permissions(locks.group_access);
  UniqueFd opened = Owned(CreateSemaphoreW(
      permissions.attributes(), 0, 1, LockName(locks.object, byte).c_str()));
  if (!opened.valid()) return false;  // an event has the name
  locks.held.push_back({byte, std::move(opened), /*is_shared=*/true});
  return true;
}

bool SideLocks::HeldByOther(int64_t byte) const {
  if (!IsOurs()) return false;
  const Locks& locks = LocksOf(access_);
  const Locks::Held* const own = Find(locks, byte);
  if (own == nullptr) return Exists(LockName(locks.object, byte));
  if (!own->is_shared) return false;
  PUBLIC_OBJECT_BASIC_INFORMATION lock = {};
  NtQueryObject(HandleOf(own->lock.get()), ObjectBasicInformation, &lock,
                sizeof(lock), nullptr);
  return lock.HandleCount > 1;
}

void SideLocks::Release() {
  if (IsOurs()) delete &LocksOf(access_);
  access_ = kNone;
}

}  // namespace tandem
