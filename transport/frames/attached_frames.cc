#include "transport/attached_frames.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/shared_file.h"

namespace tandem {

AttachedFrames::AttachedFrames(std::string name, RegionLock lock,
                               std::shared_ptr<const RegionMapping> mapping,
                               FrameReader reader)
    : name_(std::move(name)),
      lock_(std::make_unique<RegionLock>(std::move(lock))),
      mapping_(std::move(mapping)),
      reader_(std::move(reader)) {}

AttachedFrames::AttachedFrames(AttachedFrames&&) noexcept = default;
AttachedFrames& AttachedFrames::operator=(AttachedFrames&&) noexcept = default;
AttachedFrames::~AttachedFrames() = default;

absl::StatusOr<AttachedFrames> AttachedFrames::OpenSegment(
    absl::string_view run_id) {
  TANDEM_ASSIGN_OR_RETURN(const std::string name, FrameSegmentName(run_id));
  const std::string path = RegionPath(name);
  const absl::StatusOr<SharedFile> file = OpenSharedFile(name, path, O_RDONLY);
  if (CodeOf(file.status()) == ErrorCode::kNotReady) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("'", Printable(name),
                     "': expected a writer's frames, found no ",
                     Printable(path), "; start the run, or check its id"));
  }
  if (!file.ok()) return file.status();
  TANDEM_RETURN_IF_ERROR(CheckTrust(name, file->status));
  const off_t bytes = file->status.st_size;
  if (bytes < static_cast<off_t>(sizeof(FlanHeader))) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("'", Printable(name), "': expected a frame ring, found ",
                     bytes, " bytes"));
  }
  TANDEM_ASSIGN_OR_RETURN(auto lock, RegionLock::On(file->fd.get()));
  return Make(name, file->fd.get(), std::move(lock), /*offset=*/0,
              static_cast<uint64_t>(bytes));
}

absl::StatusOr<AttachedFrames> AttachedFrames::OpenRegion(
    absl::string_view region_name) {
  TANDEM_ASSIGN_OR_RETURN(FoundRegion found, FindRegion(region_name));
  if (found.plan.flan_offset == 0) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", region_name,
                                  "': expected frames, found an engine that "
                                  "makes none; start one that does "
                                  "(tandem-engine: --frames=WxH)"));
  }
  return Make(region_name, found.fd.get(), std::move(found.lock),
              found.plan.flan_offset, found.plan.flan_size);
}

absl::StatusOr<AttachedFrames> AttachedFrames::OpenRun(absl::string_view run) {
  absl::StatusOr<AttachedFrames> segment = OpenSegment(run);
  if (CodeOf(segment.status()) != ErrorCode::kNotReady ||
      !CheckRegionName(run).ok() ||
      access(RegionPath(run).c_str(), F_OK) != 0) {
    return segment;
  }
  return OpenRegion(run);
}

absl::StatusOr<AttachedFrames> AttachedFrames::Make(absl::string_view name,
                                                    int fd, RegionLock lock,
                                                    uint64_t offset,
                                                    uint64_t bytes) {
  TANDEM_ASSIGN_OR_RETURN(auto mapping,
                          RegionMapping::MapReadOnly(fd, offset + bytes));
  absl::StatusOr<FrameReader> reader =
      FrameReader::Attach({mapping->At<std::byte>(offset), bytes});
  if (!reader.ok()) {
    return MakeError(
        CodeOf(reader.status()),
        absl::StrCat("'", Printable(name), "': ", reader.status().message()));
  }
  struct stat file;
  if (fstat(fd, &file) != 0) return MakeSystemError("fstat", name, errno);
  // Fails only if a process holds the lock exclusively, which the protocol
  // never does. Then the writer does not see this reader; the reader works
  // nevertheless.
  (void)lock.TryShare(static_cast<int64_t>(offset) + kFlanReadersLockByte);
  AttachedFrames frames(std::string(name), std::move(lock), std::move(mapping),
                        *std::move(reader));
  frames.device_ = file.st_dev;
  frames.inode_ = file.st_ino;
  // Tandem's segments have a second link. For a file without one, the lock
  // decides.
  frames.writer_keeps_lock_ =
      file.st_nlink > 1 || frames.lock_->HeldByOther(kFlanWriterLockByte);
  return frames;
}

AttachedFrames::Writer AttachedFrames::writer() const {
  if (!writer_keeps_lock_ || !lock_->IsOurs()) return Writer::kUnknown;
  return lock_->HeldByOther(kFlanWriterLockByte) ? Writer::kAlive
                                                 : Writer::kGone;
}

bool AttachedFrames::Replaced() const {
  struct stat file;
  return lstat(RegionPath(name_).c_str(), &file) == 0 &&
         (file.st_dev != device_ || file.st_ino != inode_);
}

}  // namespace tandem
