// The parts of a scene's segment: their sizes, and the check of a peer's.
//
// Data flow: SceneSpec -> PlanScene -> a header -> WriteScene -> memory that
// readers map; a reader's copy of the header -> CheckScene.
// Ownership: OwnedSceneSegment and SceneReader call it.
//
//   absl::StatusOr<SceneHeader> plan = PlanScene({.num_envs = 4, .nodes = 7},
//                                                glb.size());
//   SceneBytes(*plan);  // to reserve

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/scene.h"
#include "transport/frame_geometry.h"
#include "transport/frame_writer.h"

namespace tandem {

inline constexpr uint32_t kMaxSceneNodes = 65'536;
inline constexpr uint64_t kMaxGlbBytes = 256u << 20;
// A snapshot has as many rows as fit, at least one.
inline constexpr uint64_t kMaxSnapshotBytes = 1u << 20;

struct SceneSpec {
  uint32_t num_envs = 1;  // of the engine
  uint32_t nodes = 0;     // that move
  uint32_t generation = 1;
};

// Returns the header. kInvalidArgument: an environment, node or byte too many,
// or none; the text has the number and its limit.
absl::StatusOr<SceneHeader> PlanScene(const SceneSpec& spec,
                                      uint64_t glb_bytes);

// The bytes of a planned header's segment, and of its largest snapshot.
inline uint64_t SceneBytes(const SceneHeader& header) {
  return header.flan_offset + header.flan_bytes;
}
inline uint64_t SnapshotBytes(const SceneHeader& header) {
  return sizeof(SnapshotHead) + uint64_t{header.max_rows} * header.row_bytes;
}

// Writes a planned header, its GLB and an empty ring into `memory`, which is
// zero, 8-byte aligned, and has SceneBytes.
FrameWriter WriteScene(const SceneHeader& planned, absl::string_view glb,
                       std::span<std::byte> memory);

// Whether a copied header is the planned one of its numbers, and `bytes` of
// memory have room for it. kLayoutMismatch: the text has both.
absl::Status CheckScene(const SceneHeader& header, uint64_t bytes);

}  // namespace tandem
