// OwnedSceneSegment: the segment `tandem.scene.{name}` of an engine that
// publishes its scene.
//
// Data flow: a GLB -> NamedFile, an empty ring -> linked -> readers find it ->
// Publish; the destructor invalidates the ring and unlinks the file.
// Ownership: one process owns a segment and writes it. It makes one while a
// reader wants snapshots, and destroys it before it makes that of another
// model, whose generation is greater.
//
//   absl::StatusOr<OwnedSceneSegment> segment = OwnedSceneSegment::Create(
//       "demo", {.num_envs = 64, .nodes = 8, .generation = 1}, glb);
//   snapshot.Resize(8, segment->max_rows());
//   segment->Publish(snapshot);

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/scene.h"
#include "transport/frame_writer.h"
#include "transport/pose_snapshot.h"
#include "transport/scene_geometry.h"

namespace tandem {

class NamedFile;

// Move-only. In a forked child it writes nothing; the caller must not use it
// there.
class OwnedSceneSegment {
 public:
  // Removes a dead segment with this name, then makes a new one with a copy of
  // `glb`. Makes system calls. After an error nothing remains. Errors: as
  // OwnedFrameSegment::Create; kInvalidArgument also for a number or a GLB that
  // exceeds its limit.
  static absl::StatusOr<OwnedSceneSegment> Create(absl::string_view name,
                                                  const SceneSpec& spec,
                                                  absl::string_view glb);

  OwnedSceneSegment(OwnedSceneSegment&&) noexcept;
  ~OwnedSceneSegment();

  // Copies a snapshot to the next slot of the ring; returns its number, from 1.
  // Returns 0 and publishes nothing if it has more than max_rows() or other
  // nodes. Neither blocks, allocates nor makes a system call.
  uint64_t Publish(const PoseSnapshot& snapshot);

  // The rows of the largest snapshot.
  uint32_t max_rows() const { return header_.max_rows; }
  // Of the file: SceneSegmentName's.
  const std::string& name() const;

 private:
  OwnedSceneSegment(NamedFile file, const SceneHeader& header,
                    FrameWriter writer);

  std::unique_ptr<NamedFile> file_;  // nullptr: moved from
  SceneHeader header_;
  FrameWriter writer_;
};

}  // namespace tandem
