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

absl::Status CheckLimit(absl::string_view field, uint64_t found, uint64_t least,
                        uint64_t most) {
  if (found >= least && found <= most) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("scene: expected ", field, " in ", least,
                                " .. ", most, ", found ", found));
}

}  // namespace

absl::StatusOr<SceneHeader> PlanScene(const SceneSpec& spec,
                                      uint64_t glb_bytes) {
  absl::Status status = CheckLimit("environments", spec.num_envs, 1, kMaxEnvs);
  status.Update(CheckLimit("moving nodes", spec.nodes, 0, kMaxSceneNodes));
  status.Update(CheckLimit("generation", spec.generation, 1, UINT32_MAX));
  status.Update(CheckLimit("bytes of GLB", glb_bytes, 1, kMaxGlbBytes));
  if (!status.ok()) return status;
  SceneHeader header = {};
  std::copy(std::begin(kSceneMagic), std::end(kSceneMagic), header.magic);
  header.version = kSceneVersion;
  header.header_bytes = sizeof(SceneHeader);
  header.generation = spec.generation;
  header.num_envs = spec.num_envs;
  header.nodes = spec.nodes;
  header.glb_bytes = glb_bytes;
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
  const auto text = [](const SceneHeader& of) {
    return absl::StrCat(
        "magic '", Printable(absl::string_view(of.magic, sizeof(of.magic))),
        "', version ", of.version, ", ", of.num_envs, " environments, ",
        of.nodes, " moving nodes, ", of.max_rows, " rows of ", of.row_bytes,
        " bytes, ", of.glb_bytes, " bytes of GLB, a ring of ", of.flan_bytes,
        " bytes at ", of.flan_offset);
  };
  const absl::StatusOr<SceneHeader> expected =
      PlanScene({.num_envs = header.num_envs,
                 .nodes = header.nodes,
                 .generation = header.generation},
                header.glb_bytes);
  if (expected.ok() && std::memcmp(&*expected, &header, sizeof(header)) == 0 &&
      SceneBytes(header) <= bytes) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorCode::kLayoutMismatch,
      absl::StrCat(
          "scene: expected ",
          expected.ok() ? text(*expected) : expected.status().message(),
          "; found ", text(header), " in ", bytes, " bytes"));
}

}  // namespace tandem
