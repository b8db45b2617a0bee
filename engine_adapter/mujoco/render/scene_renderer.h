// SceneRenderer: images of a model's states, by MuJoCo's own renderer.
// SceneSnapshot: the copy of an environment that an image needs.
//
// Data flow: mjData, marks, camera -> scene -> OpenGL, off-screen -> rows of
// RGB, or distances.
// Ownership: one thread makes it, draws and destroys it.
//
//   absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
//       SceneRenderer::Create(model, {.width = 320, .height = 240});
//   absl::Status status = (*renderer)->Draw({.data = data}, camera, tile);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_RENDERER_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_RENDERER_H_

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/render/debug_canvas.h"
#include "engine_adapter/mujoco/render/egl_context.h"

namespace tandem {

// What is drawn: positions as after a step. MuJoCo's functions want it mutable
// and leave it as it is.
struct SceneState {
  mjData* data = nullptr;
  // Colours, lights, cameras, terrain and the like are this model's, a changed
  // copy of the renderer's, if there is one; meshes, textures and the sizes of
  // planes are the renderer's. Where its planes are endless this one's become
  // so.
  mjModel* own_model = nullptr;
  std::span<const DebugMark> marks = {};
};

// With all effects and the same camera the images are Gymnasium's, byte for
// byte.
class SceneRenderer {
 public:
  struct Options {
    uint32_t width = 0;  // of the first images: another costs milliseconds
    uint32_t height = 0;
    FrameEffects effects = {};
    // Planes of the world reach to the horizon, as they do for collisions: else
    // a robot that runs far stands in the void.
    bool endless_planes = false;
    size_t most_marks = 0;  // more are not drawn
  };

  // Makes a context of OpenGL, or takes part in one of this thread. Copies the
  // model, whose sizes of buffers are its renderer's. kUnsupported (see
  // EglContext), kEngineFailed with MuJoCo's words.
  static absl::StatusOr<std::unique_ptr<SceneRenderer>> Create(
      const mjModel& model, const Options& options,
      std::shared_ptr<EglContext> gl = nullptr);
  ~SceneRenderer();
  SceneRenderer(const SceneRenderer&) = delete;
  SceneRenderer& operator=(const SceneRenderer&) = delete;

  // Writes `tile`. kEngineFailed with MuJoCo's words; the tile is unspecified
  // then.
  absl::Status Draw(const SceneState& state, mjvCamera camera,
                    const FrameTile& tile);

  // Writes float32[height, width], the top row first: distances along the
  // camera's axis in metres, as mujoco.Renderer has them; marks are no things,
  // and left out. Returns what is written where there is nothing: the far
  // plane's. Errors as Draw.
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

  // In this order: what is below uses what is above.
  std::shared_ptr<EglContext> gl_;
  ModelPtr model_;
  const bool endless_planes_;
  mjrRect viewport_;
  mjvOption visual_;
  mjvScene scene_;
  mjrContext context_;
  std::vector<unsigned char> pixels_;    // bottom row first, as OpenGL has them
  std::vector<float> uploaded_terrain_;  // hfield_data that OpenGL has
};

class SceneSnapshot {
 public:
  // For environments of this model, or of one of their own that was made from
  // it. Errors: MakeData's.
  static absl::StatusOr<SceneSnapshot> Create(
      std::shared_ptr<const mjModel> model);

  // Copies positions as the last step left them (mjv_copyData: 4 us for
  // HalfCheetah), so that the image is the one that Gymnasium's would be, and
  // what is drawn of a model that is the environment's own. Allocates only for
  // the first of those.
  void Take(const MujocoEnvironment& environment,
            std::shared_ptr<const DebugMarks> marks);

  // Of the last Take: kEngineFailed with MuJoCo's words.
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

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_RENDERER_H_
