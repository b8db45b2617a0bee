// SceneReader: the GLB of a scene's segment, and its newest snapshot.
//
// Data flow: mapped bytes -> a checked copy of the header -> glb(); the ring ->
// a copied, checked snapshot.
// Ownership: the caller owns the memory, which may be mapped read-only, and
// which must outlive the reader. Any number of readers read one segment; they
// write nothing into it.
//
//   absl::StatusOr<SceneReader> reader = SceneReader::Attach(segment);
//   PoseSnapshot snapshot;  // its buffer is reused
//   if (reader->Next(&snapshot) == FrameReader::Found::kFrame) Show(snapshot);
//
// The content is untrusted, as that of FrameReader. The GLB is not checked:
// parse a copy.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "schema/layout/scene.h"
#include "transport/frame_reader.h"
#include "transport/pose_snapshot.h"

namespace tandem {

// Not thread-safe. No call blocks or makes a system call.
class SceneReader {
 public:
  // Checks the header and the ring's. `segment` is 8-byte aligned.
  // kLayoutMismatch: not a scene that this version can read.
  static absl::StatusOr<SceneReader> Attach(std::span<const std::byte> segment);

  // Copies the newest whole snapshot, each once: as FrameReader::Next. kFrame:
  // `into` has at most max_rows rows, each of an environment below num_envs;
  // its numbers are unchecked (PoseSnapshot::IsFinite). kInvalidated: the
  // engine has ended this scene; there may be one of the same name with a
  // greater generation. kBroken: the segment is corrupt. `into` is valid only
  // with kFrame.
  FrameReader::Found Next(PoseSnapshot* into);
  // The number of snapshots that Next has skipped.
  uint64_t dropped() const { return frames_.dropped(); }
  bool Invalidated() const { return frames_.Invalidated(); }

  // A checked copy.
  const SceneHeader& header() const { return header_; }
  // In shared memory. Valid as long as the memory.
  std::span<const std::byte> glb() const { return glb_; }

 private:
  SceneReader(const SceneHeader& header, std::span<const std::byte> glb,
              FrameReader frames)
      : header_(header), glb_(glb), frames_(std::move(frames)) {}
  bool Accepts(const PoseSnapshot& snapshot, uint64_t bytes) const;

  SceneHeader header_;
  std::span<const std::byte> glb_;
  FrameReader frames_;
  Frame frame_;
};

}  // namespace tandem
