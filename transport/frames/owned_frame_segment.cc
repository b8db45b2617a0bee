#include "transport/frames/owned_frame_segment.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schema/layout/flan.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"
#include "transport/frames/frame_segment_name.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/region_name.h"

namespace tandem {
namespace {

constexpr int64_t kAskForReadersNs = 1'000'000'000;

// One lock byte serves a stand-alone segment's writer and an engine.
static_assert(kFlanWriterLockByte == kEngineLockByte);

}  // namespace

absl::StatusOr<OwnedFrameSegment> OwnedFrameSegment::Create(
    absl::string_view run_id, const FrameGeometry& geometry) {
  const absl::StatusOr<std::string> name = FrameSegmentName(run_id);
  if (!name.ok()) return name.status();
  const absl::StatusOr<uint64_t> bytes = FrameWriter::RingBytes(geometry);
  if (!bytes.ok()) return bytes.status();
  RemoveDeadRegions();
  if (absl::Status status = RemoveUnlessLocked(*name); !status.ok()) {
    return status;
  }
  absl::StatusOr<NamedFile> file =
      NamedFile::Reserve(*name, *bytes, /*group_access=*/false,
                         {"the frame ring", "use fewer slots (capacity)"});
  if (!file.ok()) return file.status();
  absl::StatusOr<std::shared_ptr<const RegionMapping>> mapping =
      RegionMapping::Map(file->fd(), *bytes);
  if (!mapping.ok()) return mapping.status();
  absl::StatusOr<RegionLock> lock = RegionLock::On(file->fd());
  if (!lock.ok()) return lock.status();
  if (!lock->TryAcquire(kFlanWriterLockByte)) {
    return MakeSystemError("fcntl(F_OFD_SETLK)", kSharedMemoryDir, errno);
  }
  absl::StatusOr<FrameWriter> writer =
      FrameWriter::Create({(*mapping)->base(), *bytes}, geometry);
  if (!writer.ok()) return writer.status();
  const absl::StatusOr<bool> linked =
      file->LinkOver([&] { return RemoveUnlessLocked(*name); });
  if (!linked.ok()) return linked.status();
  if (*linked) {
    return OwnedFrameSegment(*std::move(file), *std::move(lock),
                             *std::move(mapping), *std::move(writer));
  }
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("'", Printable(*name),
                                "': other writers kept taking the "
                                "name; choose another run id"));
}

OwnedFrameSegment::OwnedFrameSegment(
    NamedFile file, RegionLock lock,
    std::shared_ptr<const RegionMapping> mapping, FrameWriter writer)
    : mapping_(std::move(mapping)),
      writer_(std::move(writer)),
      lock_(std::move(lock)),
      file_(std::move(file)) {}

OwnedFrameSegment& OwnedFrameSegment::operator=(
    OwnedFrameSegment&& other) noexcept {
  if (this != &other) {
    if (IsOurs()) writer_.Invalidate();
    file_ = std::move(other.file_);  // unlinks while the lock is still held
    lock_ = std::move(other.lock_);
    writer_ = std::move(other.writer_);
    mapping_ = std::move(other.mapping_);
    asked_ns_ = other.asked_ns_;
    has_reader_ = other.has_reader_;
  }
  return *this;
}

OwnedFrameSegment::~OwnedFrameSegment() {
  if (IsOurs()) writer_.Invalidate();
}

bool OwnedFrameSegment::HasReader() {
  const int64_t now_ns = MonotonicNanos();
  if (now_ns - asked_ns_ >= kAskForReadersNs) {
    asked_ns_ = now_ns;
    has_reader_ = lock_.HeldByOther(kFlanReadersLockByte);
    file_.RestoreName();
  }
  return has_reader_;
}

}  // namespace tandem
