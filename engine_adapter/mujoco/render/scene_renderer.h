// SceneRenderer: renders images of a model's states with MuJoCo's renderer.
// SceneSnapshot: a copy of the parts of an environment that an image needs.
//
// Data flow: mjData, marks, camera -> scene -> OpenGL, off-screen -> rows of
// RGB, or distances.
// Ownership: one thread makes the renderer, draws with it and destroys it.
//
//   absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
//       SceneRenderer::Create(model, {.width = 320, .height = 240});
//   absl::Status status = (*renderer)->Draw({.data = data}, camera, tile);

#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/render/egl_context.h"

namespace tandem {

// The state to draw. MuJoCo's functions take it as mutable, but do not change
// it.
struct SceneState {
  mjData* data = nullptr;  // positions as after a step
  // nullptr, or a changed copy of the renderer's model. Colours, lights,
  // cameras and terrain are this model's; meshes, textures and plane sizes are
  // the renderer's. A renderer with endless planes makes this model's planes
  // endless.
  mjModel* own_model = nullptr;
  std::span<const DebugMark> marks = {};
};

// With all effects and the same camera, the images equal Gymnasium's in each
// byte.
class SceneRenderer {
 public:
  struct Options {
    // The size of the first images. A change of size takes milliseconds.
    uint32_t width = 0;
    uint32_t height = 0;
    FrameEffects effects = {};
    // Draws the world's planes up to the horizon. Collisions treat planes as
    // infinite, so a robot can leave the drawn part of a finite plane.
    bool endless_planes = false;
    size_t most_marks = 0;  // further marks are not drawn
  };

  // Makes an OpenGL context, or uses `gl`, a context of this thread. Copies the
  // model and sets the copy's buffer sizes. kUnsupported (see EglContext),
  // kEngineFailed with MuJoCo's error text.
  static absl::StatusOr<std::unique_ptr<SceneRenderer>> Create(
      const mjModel& model, const Options& options,
      std::shared_ptr<EglContext> gl = nullptr);
  ~SceneRenderer();
  SceneRenderer(const SceneRenderer&) = delete;
  SceneRenderer& operator=(const SceneRenderer&) = delete;

  // Writes `tile`. kEngineFailed with MuJoCo's error text: the tile is then
  // unspecified.
  absl::Status Draw(const SceneState& state, mjvCamera camera,
                    const FrameTile& tile);

  // Writes float32[height, width], the top row first: distances along the
  // camera's axis in metres, as mujoco.Renderer. Marks are not drawn. Returns
  // the far plane's distance, the value of pixels without an object. Errors: as
  // Draw.
  absl::StatusOr<float> DrawDepth(const SceneState& state, mjvCamera camera,
                                  uint32_t width, uint32_t height,
                                  std::span<float> metres);

  const std::shared_ptr<EglContext>& gl() const { return gl_; }

 private:
  SceneRenderer(std::shared_ptr<EglContext> gl, ModelPtr model,
                const Options& options);
  void UpdateScene(const SceneState& state, mjvCamera camera);
  void UploadTerrain(const mjModel& model);
  void AddMarks(std::span<const DebugMark> marks);
  void Resize(uint32_t width, uint32_t height);

  // The order matters: each member uses those above.
  std::shared_ptr<EglContext> gl_;
  ModelPtr model_;
  const bool endless_planes_;
  mjrRect viewport_;
  mjvOption visual_;
  mjvScene scene_;
  mjrContext context_;
  std::vector<unsigned char> pixels_;    // bottom row first, as in OpenGL
  std::vector<float> uploaded_terrain_;  // hfield_data that OpenGL has
};

class SceneSnapshot {
 public:
  // For environments with this model or a changed copy of it. Errors: as
  // MakeData.
  static absl::StatusOr<SceneSnapshot> Create(
      std::shared_ptr<const mjModel> model);

  // Copies the last step's positions (mjv_copyData: 4 us for HalfCheetah), so
  // that the image equals Gymnasium's. Copies also the drawn parts of an
  // environment's own model; allocates for the first such copy only.
  void Take(const MujocoEnvironment& environment,
            std::shared_ptr<const DebugMarks> marks);

  // The last Take's error: kEngineFailed with MuJoCo's error text.
  const absl::Status& status() const { return status_; }
  const mjData& data() const { return *data_; }
  SceneState state();

 private:
  SceneSnapshot(std::shared_ptr<const mjModel> model, DataPtr data)
      : model_(std::move(model)), data_(std::move(data)) {}
  void TakeModel(const mjModel& model);

  std::shared_ptr<const mjModel> model_;
  DataPtr data_;
  ModelPtr own_model_;  // nullptr: never needed
  bool has_own_model_ = false;
  std::shared_ptr<const DebugMarks> marks_;
  absl::Status status_;
};

}  // namespace tandem
