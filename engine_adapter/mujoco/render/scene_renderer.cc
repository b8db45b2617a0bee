#include "engine_adapter/mujoco/render/scene_renderer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/mujoco_log.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

// Gymnasium's; models of more parts get room for them.
constexpr int kLeastGeoms = 1000;

// MuJoCo draws planes of size 0 to the horizon. A texture that was spread over
// the plane then keeps its grain by repeating per metre.
void MakePlanesEndless(mjModel* model) {
  for (mjtSize geom = 0; geom < model->ngeom; ++geom) {
    mjtNum* const size = model->geom_size + 3 * geom;
    if (model->geom_type[geom] != mjGEOM_PLANE || size[0] <= 0 ||
        size[1] <= 0 || model->body_weldid[model->geom_bodyid[geom]] != 0) {
      continue;
    }
    const int material = model->geom_matid[geom];
    if (material >= 0 && model->mat_texuniform[material] == 0) {
      model->mat_texuniform[material] = 1;
      for (const mjtSize axis : {0, 1}) {
        model->mat_texrepeat[2 * material + axis] /=
            static_cast<float>(size[axis]);
      }
    }
    size[0] = size[1] = 0;
  }
}

absl::Status Failed(const MujocoError& error) {
  return MakeError(
      ErrorCode::kEngineFailed,
      absl::StrCat("frames: expected MuJoCo to draw, found: ", error.what()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SceneRenderer>> SceneRenderer::Create(
    const mjModel& model, const Options& options) {
  absl::StatusOr<std::unique_ptr<EglContext>> gl = EglContext::Create();
  if (!gl.ok()) return gl.status();
  try {
    ModelPtr copy(mj_copyModel(nullptr, &model));
    if (copy == nullptr) {
      return MakeError(ErrorCode::kEngineFailed,
                       "frames: memory has no room for a copy of the model");
    }
    mjVisual& visual = copy->vis;
    visual.global.offwidth = static_cast<int>(options.width);
    visual.global.offheight = static_cast<int>(options.height);
    if (!options.effects.multisampling) visual.quality.offsamples = 0;
    if (!options.effects.shadows) visual.quality.shadowsize = 0;
    if (options.endless_planes) MakePlanesEndless(copy.get());
    return std::unique_ptr<SceneRenderer>(
        new SceneRenderer(*std::move(gl), std::move(copy), options));
  } catch (const MujocoError& error) {
    return Failed(error);
  }
}

SceneRenderer::SceneRenderer(std::unique_ptr<EglContext> gl, ModelPtr model,
                             const Options& options)
    : gl_(std::move(gl)),
      model_(std::move(model)),
      viewport_{.left = 0,
                .bottom = 0,
                .width = static_cast<int>(options.width),
                .height = static_cast<int>(options.height)},
      pixels_(size_t{options.width} * options.height * 3) {
  mjv_defaultOption(&visual_);
  mjv_defaultScene(&scene_);
  mjr_defaultContext(&context_);
  mjr_makeContext(model_.get(), &context_, mjFONTSCALE_150);
  mjr_setBuffer(mjFB_OFFSCREEN, &context_);
  mjv_makeScene(model_.get(), &scene_,
                std::max(kLeastGeoms, 2 * static_cast<int>(model_->ngeom)));
  scene_.flags[mjRND_SHADOW] = options.effects.shadows ? 1 : 0;
  scene_.flags[mjRND_REFLECTION] = options.effects.reflections ? 1 : 0;
}

SceneRenderer::~SceneRenderer() {
  mjv_freeScene(&scene_);
  mjr_freeContext(&context_);
}

absl::Status SceneRenderer::Draw(mjData* data, mjvCamera camera,
                                 const FrameTile& tile) {
  try {
    // It lays endless planes under the camera that it finds, the last tile's.
    mjv_updateCamera(model_.get(), data, &camera, &scene_);
    mjv_updateScene(model_.get(), data, &visual_, nullptr, &camera, mjCAT_ALL,
                    &scene_);
    mjr_render(viewport_, &scene_, &context_);
    mjr_readPixels(pixels_.data(), nullptr, viewport_, &context_);
  } catch (const MujocoError& error) {
    return Failed(error);
  }
  for (size_t row = 0; row < tile.rows; ++row) {
    std::memcpy(tile.first + row * tile.stride,
                pixels_.data() + (tile.rows - 1 - row) * tile.row_bytes,
                tile.row_bytes);
  }
  return absl::OkStatus();
}

}  // namespace tandem
