#include "transport/owned_frame_segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/named_file.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr int64_t kAskForReadersNs = 1'000'000'000;

// A segment's writer and an engine use the same lock byte.
static_assert(kFlanWriterLockByte == kEngineLockByte);

}  // namespace

absl::StatusOr<OwnedFrameSegment> OwnedFrameSegment::Create(
    absl::string_view run_id, const FrameGeometry& geometry) {
  TANDEM_ASSIGN_OR_RETURN(const std::string name, FrameSegmentName(run_id));
  TANDEM_ASSIGN_OR_RETURN(const uint64_t bytes,
                          FrameWriter::RingBytes(geometry));
  RemoveDeadRegions();
  TANDEM_RETURN_IF_ERROR(RemoveUnlessLocked(name));
  TANDEM_ASSIGN_OR_RETURN(
      auto file,
      NamedFile::Reserve(name, bytes, /*group_access=*/false,
                         {"the frame ring", "use fewer slots (capacity)"}));
  TANDEM_ASSIGN_OR_RETURN(
      auto writer,
      FrameWriter::Create({file.mapping()->base(), bytes}, geometry));
  TANDEM_ASSIGN_OR_RETURN(const bool linked, file.LinkOver([&] {
    return RemoveUnlessLocked(name);
  }));
  if (linked) return OwnedFrameSegment(std::move(file), std::move(writer));
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("'", Printable(name),
                                "': other writers kept taking the "
                                "name; choose another run id"));
}

OwnedFrameSegment::OwnedFrameSegment(NamedFile file, FrameWriter writer)
    : file_(std::make_unique<NamedFile>(std::move(file))),
      writer_(std::move(writer)) {}

OwnedFrameSegment::OwnedFrameSegment(OwnedFrameSegment&&) noexcept = default;

OwnedFrameSegment::~OwnedFrameSegment() {
  if (IsOurs()) writer_.Invalidate();
}

bool OwnedFrameSegment::IsOurs() const {
  return file_ != nullptr && file_->IsOurs();
}

const std::string& OwnedFrameSegment::name() const { return file_->name(); }

bool OwnedFrameSegment::HasReader() {
  const int64_t now_ns = MonotonicNanos();
  if (now_ns - asked_ns_ >= kAskForReadersNs) {
    asked_ns_ = now_ns;
    has_reader_ = file_->lock().HeldByOther(kFlanReadersLockByte);
    file_->RestoreName();
  }
  return has_reader_;
}

}  // namespace tandem
