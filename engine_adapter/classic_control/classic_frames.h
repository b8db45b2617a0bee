// ClassicFrames: the FrameSource of environments that render themselves in two
// dimensions.
//
// Data flow: an environment's pose -> Capture -> a copy -> Draw -> pixels.
// Ownership: the engine owns it, beside the environments that it shows.
//
//   struct Pose { double x, theta; };
//   static constexpr CanvasSize kCanvasSize = {.width = 600, .height = 400};
//   Pose pose() const { return {x_, theta_}; }
//   static void Draw(const Pose& pose, Canvas* canvas);
//
// are the members that an environment needs. Then fittings.frames =
// std::make_unique<ClassicFrames<CartPole>>(environments).

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/frames/canvas.h"

namespace tandem {

template <typename Drawn>
class ClassicFrames final : public FrameSource {
 public:
  // The environments must outlive this object.
  explicit ClassicFrames(std::vector<const Drawn*> environments)
      : environments_(std::move(environments)) {}

  // kInvalidArgument if `options` names a camera: these tasks have none.
  absl::Status Prepare(const FrameOptions& options) override {
    if (options.model_cameras != std::vector<std::string>{""}) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("camera: expected none, as this task has no cameras, "
                       "found '",
                       absl::StrJoin(options.model_cameras, ","), "'"));
    }
    envs_ = options.envs;
    poses_.resize(envs_.size());
    return absl::OkStatus();
  }

  void Capture(uint32_t place) override {
    poses_[place] = environments_[envs_[place]]->pose();
  }

  absl::Status Start() override { return Canvas::Available(); }

  absl::Status Draw(uint32_t place, const FrameTile& tile) override {
    Canvas canvas(tile, Drawn::kCanvasSize);
    Drawn::Draw(poses_[place], &canvas);
    return absl::OkStatus();
  }

  void Stop() override {}

 private:
  std::vector<const Drawn*> environments_;
  std::vector<uint32_t> envs_;
  // Each element belongs to the stepping thread or the render thread,
  // alternately.
  std::vector<typename Drawn::Pose> poses_;
};

}  // namespace tandem
