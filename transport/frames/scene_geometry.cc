#include "transport/scene_geometry.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr uint32_t kSlots = 4;

uint64_t Aligned(uint64_t offset) {
  return (offset + kSceneAlignment - 1) / kSceneAlignment * kSceneAlignment;
}

FrameGeometry RingOf(const SceneHeader& planned) {
  return WithAlignedSlots(
      {.width = static_cast<uint32_t>(SnapshotBytes(planned)),
       .height = 1,
       .channels = 1,
       .capacity = kSlots,
       .kind = FrameKind::kBytes});
}

absl::Status Check(ErrorCode code, absl::string_view field, uint64_t found,
                   uint64_t least, uint64_t most) {
  if (found >= least && found <= most) return absl::OkStatus();
  return MakeError(
      code, least == most
                ? absl::StrCat("scene: expected ", field, " ", least,
                               ", found ", found)
                : absl::StrCat("scene: expected ", field, " in ", least, " .. ",
                               most, ", found ", found));
}

absl::Status CheckLimits(ErrorCode code, const SceneHeader& header) {
  absl::Status status =
      Check(code, "environments", header.num_envs, 1, kMaxEnvs);
  status.Update(Check(code, "moving nodes", header.nodes, 0, kMaxSceneNodes));
  status.Update(Check(code, "generation", header.generation, 1, UINT32_MAX));
  status.Update(Check(code, "bytes of GLB", header.glb_bytes, 1, kMaxGlbBytes));
  return status;
}

}  // namespace

absl::StatusOr<SceneHeader> PlanScene(const SceneSpec& spec,
                                      uint64_t glb_bytes) {
  SceneHeader header = {};
  std::copy(std::begin(kSceneMagic), std::end(kSceneMagic), header.magic);
  header.version = kSceneVersion;
  header.header_bytes = sizeof(SceneHeader);
  header.generation = spec.generation;
  header.num_envs = spec.num_envs;
  header.nodes = spec.nodes;
  header.glb_bytes = glb_bytes;
  TANDEM_RETURN_IF_ERROR(CheckLimits(ErrorCode::kInvalidArgument, header));
  const uint64_t row_bytes = SceneRowBytes(spec.nodes);
  header.row_bytes = static_cast<uint32_t>(row_bytes);
  header.max_rows = static_cast<uint32_t>(
      std::clamp<uint64_t>(kMaxSnapshotBytes / row_bytes, 1, spec.num_envs));
  header.glb_offset = sizeof(SceneHeader);
  header.flan_offset = Aligned(header.glb_offset + glb_bytes);
  TANDEM_ASSIGN_OR_RETURN(header.flan_bytes,
                          FrameWriter::RingBytes(RingOf(header)));
  return header;
}

FrameWriter WriteScene(const SceneHeader& planned, absl::string_view glb,
                       std::span<std::byte> memory) {
  std::memcpy(memory.data(), &planned, sizeof(planned));
  std::ranges::copy(std::as_bytes(std::span(glb.data(), glb.size())),
                    &memory[planned.glb_offset]);
  return FrameWriter::Create(
             memory.subspan(planned.flan_offset, planned.flan_bytes),
             RingOf(planned))
      .value();  // planned
}

absl::Status CheckScene(const SceneHeader& header, uint64_t bytes) {
  constexpr auto kCode = ErrorCode::kLayoutMismatch;
  const absl::string_view magic(header.magic, sizeof(header.magic));
  if (std::memcmp(header.magic, kSceneMagic, sizeof(kSceneMagic)) != 0) {
    return MakeError(kCode, absl::StrCat("scene: expected magic 'TSCN', found ",
                                         "'", Printable(magic), "'"));
  }
  absl::Status status =
      Check(kCode, "version", header.version, kSceneVersion, kSceneVersion);
  status.Update(Check(kCode, "header_bytes", header.header_bytes,
                      sizeof(SceneHeader), sizeof(SceneHeader)));
  status.Update(CheckLimits(kCode, header));
  if (!status.ok()) return status;
  const uint64_t row_bytes = SceneRowBytes(header.nodes);
  status = Check(kCode, "row_bytes", header.row_bytes, row_bytes, row_bytes);
  status.Update(Check(kCode, "max_rows", header.max_rows, 1, header.num_envs));
  status.Update(Check(kCode, "glb_offset", header.glb_offset,
                      sizeof(SceneHeader), sizeof(SceneHeader)));
  if (!status.ok()) return status;
  const uint64_t ring = Aligned(header.glb_offset + header.glb_bytes);
  status = Check(kCode, "flan_offset", header.flan_offset, ring, ring);
  status.Update(Check(kCode, "flan_bytes", header.flan_bytes,
                      sizeof(FlanHeader), bytes - std::min(bytes, ring)));
  return status;
}

}  // namespace tandem
