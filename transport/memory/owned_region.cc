#include "transport/memory/owned_region.h"

#include <chrono>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "base/os/process_handle.h"
#include "schema/layout/flan.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/gpu_plan.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr int kMostDefaultNames = 1000;

}  // namespace

absl::StatusOr<OwnedRegion> OwnedRegion::Create(absl::string_view asked,
                                                const RegionSpec& spec,
                                                const RegionOptions& options) {
  const std::string name = absl::StrReplaceAll(
      asked.empty() ? DefaultRegionName() : std::string(asked),
      {{"{pid}", absl::StrCat(ProcessId())}});
  const bool any_free = asked.empty() && name == kDefaultRegionName;
  TANDEM_RETURN_IF_ERROR(CheckRegionName(name));
  const std::chrono::nanoseconds since_epoch =
      std::chrono::system_clock::now().time_since_epoch();
  TANDEM_ASSIGN_OR_RETURN(
      LrbcHeader header,
      PlanRegion(spec, static_cast<uint64_t>(since_epoch.count())));
  RemoveDeadRegions();
  if (!any_free) TANDEM_RETURN_IF_ERROR(RemoveIfDead(name));

  TANDEM_ASSIGN_OR_RETURN(
      auto file,
      NamedFile::Reserve(
          name, header.region_size, options.group_access,
          {"the region", spec.image_slot_bytes == 0
                             ? "use fewer environments"
                             : "use fewer environments, or smaller slots for "
                               "images"}));
  const RegionMapping& mapping = *file.mapping();
  // relaxed: no other process has the region yet; linking it publishes it.
  header.server_pid.store(ProcessId(), std::memory_order_relaxed);
  FillRandom(std::as_writable_bytes(std::span(header.identity)));
  std::memcpy(static_cast<void*>(mapping.header()), &header, sizeof(header));
  if (const InfosPlan infos = InfosOf(header); infos.description_bytes > 0) {
    spec.description.copy(mapping.At<char>(infos.description),
                          infos.description_bytes);
  }
  FrameRing frames;
  if (header.flan_offset != 0) {
    frames = {.offset = header.flan_offset,
              .bytes = header.flan_size,
              .geometry = WithAlignedSlots(spec.frames)};
    // PlanRegion has checked the geometry.
    const FlanHeader ring = PlanFrameRing(frames.geometry).value();
    std::memcpy(mapping.At<std::byte>(header.flan_offset),
                static_cast<const void*>(&ring), sizeof(ring));
  }
  std::vector<FieldRecord> fields = PlanFields(spec, header);
  if (!fields.empty()) {
    std::memcpy(mapping.At<std::byte>(header.fields_offset), fields.data(),
                fields.size() * sizeof(FieldRecord));
  }
  std::vector<WorkerRows> workers = PlanWorkers(header);
  for (size_t worker = 0; worker < workers.size(); ++worker) {
    mapping.At<WorkerSlot>(WorkerSlotOffset(header, worker))->rows =
        workers[worker];
  }
  if (HasGpuArrays(header)) {
    std::memcpy(mapping.At<std::byte>(header.gpu_arrays_offset),
                spec.gpu.arrays.data(), GpuTableBytes(header));
  }
  OwnedRegion region(std::move(file), frames, std::move(fields),
                     std::move(workers));
  region.any_free_ = any_free;
  return region;
}

absl::Status OwnedRegion::Link() {
  absl::Status linked = LinkName();
  for (int number = 2; any_free_ && number <= kMostDefaultNames &&
                       CodeOf(linked) == ErrorCode::kAlreadyAttached;
       ++number) {
    file_.Rename(absl::StrCat(kDefaultRegionName, "-", number));
    linked = LinkName();
  }
  return linked;
}

absl::Status OwnedRegion::LinkName() {
  TANDEM_ASSIGN_OR_RETURN(const bool linked, file_.LinkOver([this] {
    return RemoveIfDead(name());
  }));
  if (linked) return absl::OkStatus();
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("region '", name(), "': other engines kept ",
                                "taking the name; choose another"));
}

std::span<std::byte> OwnedRegion::frame_ring() const {
  if (frames_.bytes == 0) return {};
  return {mapping()->At<std::byte>(frames_.offset), frames_.bytes};
}

bool OwnedRegion::FramesWatched() const {
  return frames_.bytes != 0 &&
         file_.lock().HeldByOther(static_cast<int64_t>(frames_.offset) +
                                  kFlanReadersLockByte);
}

}  // namespace tandem
