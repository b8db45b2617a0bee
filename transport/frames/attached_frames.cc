#include "transport/attached_frames.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/side_locks.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "transport/memory/attached_region.h"

namespace tandem {

AttachedFrames::AttachedFrames(std::string name, SideLocks lock,
                               std::shared_ptr<const RegionMapping> mapping,
                               FrameReader reader)
    : name_(std::move(name)),
      lock_(std::make_unique<SideLocks>(std::move(lock))),
      mapping_(std::move(mapping)),
      reader_(std::move(reader)) {}

AttachedFrames::AttachedFrames(AttachedFrames&&) noexcept = default;
AttachedFrames& AttachedFrames::operator=(AttachedFrames&&) noexcept = default;
AttachedFrames::~AttachedFrames() = default;

absl::StatusOr<AttachedFrames> AttachedFrames::OpenSegment(
    absl::string_view run_id) {
  TANDEM_ASSIGN_OR_RETURN(const std::string name, FrameSegmentName(run_id));
  const absl::StatusOr<SharedRegion> memory =
      SharedRegion::Open(name, SharedRegion::Access::kRead);
  if (CodeOf(memory.status()) == ErrorCode::kNotReady) {
    return MakeError(ErrorCode::kNotReady,
                     absl::StrCat("'", Printable(name),
                                  "': expected a writer's frames, found no ",
                                  Printable(RegionPath(name)),
                                  "; start the run, or check its id"));
  }
  if (!memory.ok()) return memory.status();
  TANDEM_RETURN_IF_ERROR(memory->CheckTrust(name));
  if (memory->bytes() < sizeof(FlanHeader)) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("'", Printable(name), "': expected a frame ring, found ",
                     memory->bytes(), " bytes"));
  }
  TANDEM_ASSIGN_OR_RETURN(auto lock, SideLocks::On(*memory));
  return Make(name, *memory, std::move(lock), /*offset=*/0, memory->bytes());
}

absl::StatusOr<AttachedFrames> AttachedFrames::OpenRegion(
    absl::string_view region_name) {
  TANDEM_ASSIGN_OR_RETURN(FoundRegion found, FindRegion(region_name));
  const LrbcHeader& plan = found.parts.plan;
  if (plan.flan_offset == 0) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", region_name,
                                  "': expected frames, found an engine that "
                                  "makes none; start one that does "
                                  "(tandem-engine: --frames=WxH)"));
  }
  return Make(region_name, found.memory, std::move(found.lock),
              plan.flan_offset, plan.flan_size);
}

absl::StatusOr<AttachedFrames> AttachedFrames::OpenRun(absl::string_view run) {
  absl::StatusOr<AttachedFrames> segment = OpenSegment(run);
  if (CodeOf(segment.status()) != ErrorCode::kNotReady ||
      !CheckRegionName(run).ok() || !SharedRegion::At(run)) {
    return segment;
  }
  return OpenRegion(run);
}

absl::StatusOr<AttachedFrames> AttachedFrames::Make(absl::string_view name,
                                                    const SharedRegion& memory,
                                                    SideLocks lock,
                                                    uint64_t offset,
                                                    uint64_t bytes) {
  TANDEM_ASSIGN_OR_RETURN(auto mapping,
                          RegionMapping::MapReadOnly(memory, offset + bytes));
  absl::StatusOr<FrameReader> reader =
      FrameReader::Attach({mapping->At<std::byte>(offset), bytes});
  if (!reader.ok()) {
    return MakeError(
        CodeOf(reader.status()),
        absl::StrCat("'", Printable(name), "': ", reader.status().message()));
  }
  // Fails only if a process holds the lock exclusively, which the protocol
  // never does. Then the writer does not see this reader; the reader works
  // nevertheless.
  (void)lock.TryShare(static_cast<int64_t>(offset) + kFlanReadersLockByte);
  AttachedFrames frames(std::string(name), std::move(lock), std::move(mapping),
                        *std::move(reader));
  frames.id_ = memory.id();
  // Tandem's segments have a second link. For a file without one, the lock
  // decides.
  frames.writer_keeps_lock_ =
      SharedRegion::At(name, SharedRegion::Link::kSpare) == frames.id_ ||
      frames.lock_->HeldByOther(kFlanWriterLockByte);
  return frames;
}

AttachedFrames::Writer AttachedFrames::writer() const {
  if (!writer_keeps_lock_ || !lock_->IsOurs()) return Writer::kUnknown;
  return lock_->HeldByOther(kFlanWriterLockByte) ? Writer::kAlive
                                                 : Writer::kGone;
}

bool AttachedFrames::Replaced() const {
  const auto now = SharedRegion::At(name_);
  return now.has_value() && *now != id_;
}

}  // namespace tandem
