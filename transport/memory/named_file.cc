#include "transport/memory/named_file.h"

#include <utility>

#include "base/error.h"
#include "schema/layout/lrbc.h"

namespace tandem {

absl::StatusOr<NamedFile> NamedFile::Reserve(absl::string_view name,
                                             uint64_t bytes, bool group_access,
                                             const SharedRegion::Texts& texts) {
  TANDEM_ASSIGN_OR_RETURN(SharedRegion memory,
                          SharedRegion::Create(bytes, group_access, texts));
  TANDEM_ASSIGN_OR_RETURN(auto mapping, RegionMapping::Map(memory, bytes));
  TANDEM_ASSIGN_OR_RETURN(auto lock, SideLocks::On(memory));
  if (!lock.TryAcquire(kEngineLockByte)) {
    return MakeError(ErrorCode::kSystemCallFailed,
                     "expected to lock new memory, found it locked");
  }
  return NamedFile(name, std::move(memory), std::move(mapping),
                   std::move(lock));
}

absl::StatusOr<bool> NamedFile::LinkOver(
    const std::function<absl::Status()>& remove_dead) {
  constexpr int kAttempts = 8;  // other owners took the name, and died
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TANDEM_RETURN_IF_ERROR(remove_dead());
    absl::StatusOr<bool> linked = memory_.Publish(name_);
    if (!linked.ok() || *linked) return linked;
  }
  return false;
}

void NamedFile::RestoreName() const {
  if (IsOurs()) memory_.Restore(name_);
}

void NamedFile::RemoveName() const {
  if (IsOurs()) memory_.Unpublish(name_).IgnoreError();  // no caller can act
}

}  // namespace tandem
