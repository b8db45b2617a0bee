// PoseSnapshot: the poses of an engine's environments at one instant.
//
// Data flow: the engine -> row, poses -> OwnedSceneSegment; SceneReader -> row,
// poses -> a viewer. The bytes are those of shared memory (scene.h).
// Ownership: a value; its buffer is reused.
//
//   PoseSnapshot snapshot;
//   snapshot.Resize(/*nodes=*/8, /*rows=*/2);
//   snapshot.row(0).env = 5;
//   snapshot.poses(0)[0] = x_of_the_first_node;

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schema/layout/scene.h"

namespace tandem {

class PoseSnapshot {
 public:
  // The size of a snapshot; the content is kept as far as it fits, or 0. Sets
  // rows. Allocates only to enlarge the buffer.
  void Resize(uint32_t nodes, uint32_t rows) {
    nodes_ = nodes;
    row_bytes_ = SceneRowBytes(nodes);
    bytes_.resize(sizeof(SnapshotHead) + rows * row_bytes_);
    head().rows = rows;
  }

  // Its bytes in shared memory.
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  SnapshotHead& head() { return *At<SnapshotHead>(0); }
  const SnapshotHead& head() const { return *At<SnapshotHead>(0); }
  uint32_t rows() const { return bytes_.empty() ? 0 : head().rows; }
  uint32_t nodes() const { return nodes_; }

  // `index` < rows().
  SceneRow& row(uint32_t index) { return *At<SceneRow>(OffsetOf(index)); }
  const SceneRow& row(uint32_t index) const {
    return *At<SceneRow>(OffsetOf(index));
  }
  // float32[nodes, kPoseFloats].
  std::span<float> poses(uint32_t index) {
    return {At<float>(OffsetOf(index) + sizeof(SceneRow)),
            size_t{nodes_} * kPoseFloats};
  }
  std::span<const float> poses(uint32_t index) const {
    return const_cast<PoseSnapshot*>(this)->poses(index);
  }
  // Whether all numbers of the row's poses are finite: an engine may have
  // failed to keep its simulation stable.
  bool IsFinite(uint32_t index) const {
    return std::ranges::all_of(poses(index),
                               [](float x) { return std::isfinite(x); });
  }

 private:
  uint64_t OffsetOf(uint32_t index) const {
    return sizeof(SnapshotHead) + index * row_bytes_;
  }
  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(const_cast<std::byte*>(&bytes_[offset]));
  }

  uint32_t nodes_ = 0;
  uint64_t row_bytes_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace tandem
