#include "transport/memory/observed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "transport/memory/region_lock.h"
#include "transport/region.h"

namespace tandem {
namespace {

// Names of segments may have characters that a region's name may not.
absl::Status CheckName(absl::string_view name) {
  constexpr size_t kLongestFileName = 255;
  if (absl::StartsWith(name, kFlanSegmentPrefix) &&
      name.size() <= kLongestFileName &&
      name.find('/') == absl::string_view::npos &&
      name.find('\0') == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return CheckRegionName(name);
}

}  // namespace

absl::StatusOr<ObservedFile> ObservedFile::Open(absl::string_view name) {
  TANDEM_RETURN_IF_ERROR(CheckName(name));
  const std::string spare_path = SpareLinkPath(name);
  absl::StatusOr<SharedFile> opened =
      OpenSharedFile(name, RegionPath(name), O_RDONLY);
  const bool name_gone = CodeOf(opened.status()) == ErrorCode::kNotReady;
  if (name_gone) opened = OpenSharedFile(name, spare_path, O_RDONLY);
  if (CodeOf(opened.status()) == ErrorCode::kNotReady) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("region '", Printable(name), "': expected a file in ",
                     kSharedMemoryDir, ", found none of that name"));
  }
  if (!opened.ok()) return opened.status();
  ObservedFile file(*std::move(opened));
  file.name_gone_ = name_gone;
  file.has_spare_link_ = LeadsTo(spare_path, file.file_.status);
  return file;
}

bool ObservedFile::Read(uint64_t offset, void* into, size_t bytes) const {
  // This check also excludes offsets that pread refuses.
  if (offset > this->bytes() || bytes > this->bytes() - offset) return false;
  return pread(file_.fd.get(), into, bytes, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes);
}

std::optional<bool> ObservedFile::IsLocked(int64_t byte) const {
  return tandem::IsLocked(file_.fd.get(), byte);
}

}  // namespace tandem
