// AttachedScene: a reader's mapping of an engine's scene.
//
// Data flow: name -> the segment, mapped read-only -> SceneReader.
// Ownership: any number of readers. The engine makes the segment while an RPC
// stream WatchScene is open, and says its name and generation in the stream.
//
//   absl::StatusOr<AttachedScene> scene = AttachedScene::Open("demo");
//   PoseSnapshot snapshot;
//   if (scene->reader().Next(&snapshot) == FrameReader::Found::kFrame)
//     Show(snapshot);

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "transport/region.h"
#include "transport/scene_reader.h"

namespace tandem {

class SideLocks;

// Move-only. In a forked child writer() is kUnknown; the reader still returns
// snapshots.
class AttachedScene {
 public:
  // Maps the segment of a region's or a run's name. Makes system calls; does
  // not wait. Errors:
  //   kInvalidArgument  the name
  //   kNotReady         no such segment
  //   kLayoutMismatch   not a scene that this version can read
  //   kAccessDenied     another user owns it; the text names the user
  static absl::StatusOr<AttachedScene> Open(absl::string_view name);

  AttachedScene(AttachedScene&&) noexcept;
  AttachedScene& operator=(AttachedScene&&) noexcept;
  ~AttachedScene();

  SceneReader& reader() { return reader_; }
  const SceneReader& reader() const { return reader_; }

  enum class Writer : uint8_t { kAlive, kGone, kUnknown };
  // The writer's state, by its lock. Makes one system call.
  Writer writer() const;

  // Whether the name now leads to another file. Makes one system call.
  bool Replaced() const;

  // Of the segment.
  const std::string& name() const { return name_; }

 private:
  AttachedScene(std::string name, const SharedRegion::Id& id, SideLocks lock,
                std::shared_ptr<const RegionMapping> mapping,
                SceneReader reader);

  std::string name_;
  SharedRegion::Id id_;  // of the mapped memory
  std::unique_ptr<SideLocks> lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  SceneReader reader_;
};

}  // namespace tandem
