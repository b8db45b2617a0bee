#include "transport/memory/observed_file.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/side_locks.h"
#include "base/printable.h"
#include "transport/region.h"

namespace tandem {

absl::StatusOr<ObservedFile> ObservedFile::Open(absl::string_view name) {
  if (!IsSharedName(name)) return CheckRegionName(name);
  constexpr auto kRead = SharedRegion::Access::kRead;
  constexpr auto kSpare = SharedRegion::Link::kSpare;
  absl::StatusOr<SharedRegion> opened = SharedRegion::Open(name, kRead);
  const bool name_gone = CodeOf(opened.status()) == ErrorCode::kNotReady;
  if (name_gone) opened = SharedRegion::Open(name, kRead, kSpare);
  if (CodeOf(opened.status()) == ErrorCode::kNotReady) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("region '", Printable(name), "': expected ",
                     Printable(RegionPath(name)), ", found no such file"));
  }
  if (!opened.ok()) return opened.status();
  ObservedFile file(*std::move(opened));
  file.name_gone_ = name_gone;
  file.has_spare_link_ = SharedRegion::At(name, kSpare) == file.memory_.id();
  return file;
}

std::optional<bool> ObservedFile::IsLocked(int64_t byte) const {
  return tandem::IsLocked(memory_, byte);
}

}  // namespace tandem
