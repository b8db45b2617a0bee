// A live scene, version 1: the geometry of an engine's environments, and a ring
// of snapshots of their poses. The engine draws nothing; its readers do.
//
// Data flow: the engine writes the GLB once, then a snapshot at a time into the
// ring; readers take the newest.
// Ownership: a segment `tandem.scene.{name}` in shared memory, where `name` is
// the region's or the run's. The file gets its name when it is complete but for
// its snapshots. Only the ring changes; another model makes another file with
// this name, and invalidates the ring of the old one.
//
// The parts: SceneHeader; at glb_offset a file of glTF 2.0 in its binary form;
// at flan_offset a FLAN ring of format kFlanBytes (flan.h). A frame of the ring
// is a snapshot: SnapshotHead, then `rows` rows of `row_bytes` bytes. A row is
// a SceneRow, then for each moving node float32[7]: its position x, y, z, and
// its rotation as a unit quaternion x, y, z, w, in the engine's world. Moving
// nodes have the order of `scenes[0].extras.tandem.moving` of the GLB.
// All of the header follows from num_envs, nodes, generation and glb_bytes
// (PlanScene); a reader refuses any other.
// `schema/goldens/scene_v1.txt` lists every field; prose refers to it.
//
//   const auto* header = reinterpret_cast<const SceneHeader*>(segment);
//   if (std::memcmp(header->magic, kSceneMagic, 4) != 0) return NotAScene();

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tandem {

// The name of a segment in shared memory, without the region's or run's.
inline constexpr char kSceneSegmentPrefix[] = "tandem.scene.";

inline constexpr char kSceneMagic[4] = {'T', 'S', 'C', 'N'};
inline constexpr uint32_t kSceneVersion = 1;
inline constexpr uint64_t kSceneAlignment = 64;  // of the GLB and of the ring

// The numbers of a node's pose.
inline constexpr uint32_t kPoseFloats = 7;

// The writer locks the first byte of header_bytes: the same byte of the file as
// an engine's lock of a region, so one search finds dead files of all kinds.
inline constexpr int64_t kSceneWriterLockByte = 8;

// The writer writes all fields before the file has a name.
struct SceneHeader {
  char magic[4];
  uint32_t version;
  uint32_t header_bytes;  // sizeof(SceneHeader)
  uint32_t generation;    // from 1; grows with each scene of this engine
  uint32_t num_envs;      // of the engine
  uint32_t nodes;         // that move
  uint32_t max_rows;      // of a snapshot
  uint32_t row_bytes;     // SceneRowBytes(nodes)
  uint64_t glb_offset;
  uint64_t glb_bytes;
  uint64_t flan_offset;
  uint64_t flan_bytes;
};

// All environments of a snapshot are of the same instant between two exchanges.
struct SnapshotHead {
  uint64_t exchange;      // the region's frame_seq
  uint64_t monotonic_ns;  // CLOCK_MONOTONIC
  uint32_t rows;
  uint8_t reserved_20[12];
};

// Bits of SceneRow::flags.
inline constexpr uint32_t kSceneUnknownReturn = 1;  // episode_return and reward
inline constexpr uint32_t kSceneUnknownTime = 2;    // sim_time

// The numbers of an environment. Unknown ones are 0.
struct SceneRow {
  uint32_t env;
  uint32_t flags;
  uint64_t episode;       // of this environment, from 1
  uint64_t step;          // in the episode; 0 after a reset
  double sim_time;        // seconds in the episode
  double episode_return;  // sum of the episode's rewards so far
  double reward;          // of the last step
};

// The bytes of a row: rows begin at a multiple of 8.
constexpr uint64_t SceneRowBytes(uint32_t nodes) {
  return (sizeof(SceneRow) + sizeof(float) * kPoseFloats * nodes + 7) / 8 * 8;
}

static_assert(offsetof(SceneHeader, magic) == 0);
static_assert(offsetof(SceneHeader, version) == 4);
static_assert(offsetof(SceneHeader, header_bytes) == kSceneWriterLockByte);
static_assert(offsetof(SceneHeader, generation) == 12);
static_assert(offsetof(SceneHeader, num_envs) == 16);
static_assert(offsetof(SceneHeader, nodes) == 20);
static_assert(offsetof(SceneHeader, max_rows) == 24);
static_assert(offsetof(SceneHeader, row_bytes) == 28);
static_assert(offsetof(SceneHeader, glb_offset) == 32);
static_assert(offsetof(SceneHeader, glb_bytes) == 40);
static_assert(offsetof(SceneHeader, flan_offset) == 48);
static_assert(offsetof(SceneHeader, flan_bytes) == 56);
static_assert(sizeof(SceneHeader) == 64);
static_assert(alignof(SceneHeader) == 8);
static_assert(std::is_trivially_copyable_v<SceneHeader>);
static_assert(std::is_standard_layout_v<SceneHeader>);

static_assert(offsetof(SnapshotHead, exchange) == 0);
static_assert(offsetof(SnapshotHead, monotonic_ns) == 8);
static_assert(offsetof(SnapshotHead, rows) == 16);
static_assert(offsetof(SnapshotHead, reserved_20) == 20);
static_assert(sizeof(SnapshotHead) == 32);
static_assert(alignof(SnapshotHead) == 8);
static_assert(std::is_trivially_copyable_v<SnapshotHead>);
static_assert(std::is_standard_layout_v<SnapshotHead>);

static_assert(offsetof(SceneRow, env) == 0);
static_assert(offsetof(SceneRow, flags) == 4);
static_assert(offsetof(SceneRow, episode) == 8);
static_assert(offsetof(SceneRow, step) == 16);
static_assert(offsetof(SceneRow, sim_time) == 24);
static_assert(offsetof(SceneRow, episode_return) == 32);
static_assert(offsetof(SceneRow, reward) == 40);
static_assert(sizeof(SceneRow) == 48);
static_assert(alignof(SceneRow) == 8);
static_assert(std::is_trivially_copyable_v<SceneRow>);
static_assert(std::is_standard_layout_v<SceneRow>);

static_assert(SceneRowBytes(1) == 80);
static_assert(sizeof(float) == 4);

}  // namespace tandem
