// SceneRenderer: pictures of a model's states, by MuJoCo's own renderer.
//
// Data flow: mjData, camera -> scene -> OpenGL, off-screen -> rows of RGB.
// Ownership: one thread makes it, draws and destroys it.
//
//   absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
//       SceneRenderer::Create(model, {.width = 320, .height = 240});
//   absl::Status status = (*renderer)->Draw(data, camera, tile);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_RENDERER_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_RENDERER_H_

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/render/egl_context.h"

namespace tandem {

// With all effects and the same camera the pictures are Gymnasium's, byte for
// byte.
class SceneRenderer {
 public:
  struct Options {
    uint32_t width = 0;
    uint32_t height = 0;
    FrameEffects effects = {};
    // Planes of the world reach to the horizon, as they do for collisions: else
    // who runs far stands in the void.
    bool endless_planes = false;
  };

  // Loads EGL; copies the model, whose sizes of buffers are its renderer's.
  // kUnsupported (see EglContext), kEngineFailed with MuJoCo's words.
  static absl::StatusOr<std::unique_ptr<SceneRenderer>> Create(
      const mjModel& model, const Options& options);
  ~SceneRenderer();
  SceneRenderer(const SceneRenderer&) = delete;
  SceneRenderer& operator=(const SceneRenderer&) = delete;

  // Writes `tile`, which has the size of the options. `data` holds positions as
  // after a step; MuJoCo's functions want it mutable and leave it as it is.
  // kEngineFailed with MuJoCo's words; the tile is unspecified then.
  absl::Status Draw(mjData* data, mjvCamera camera, const FrameTile& tile);

 private:
  SceneRenderer(std::unique_ptr<EglContext> gl, ModelPtr model,
                const Options& options);

  // In this order: what is below uses what is above.
  std::unique_ptr<EglContext> gl_;
  ModelPtr model_;
  mjrRect viewport_;
  mjvOption visual_;
  mjvScene scene_;
  mjrContext context_;
  std::vector<unsigned char> pixels_;  // bottom row first, as OpenGL has them
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_RENDERER_H_
