#include "engine_adapter/mujoco/render/scene_renderer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"

namespace tandem {
namespace {

// Gymnasium's value. Models with more geoms get a larger scene.
constexpr int kLeastGeoms = 1000;

// MuJoCo draws planes of size 0 up to the horizon. A texture that covered the
// plane now repeats by the metre, at the same scale.
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

// MuJoCo's near plane is in proportion to the whole model, which may be a small
// robot on a large floor. Keeps it at most a tenth of the way to the robot.
void KeepInView(mjtNum distance, mjvScene* scene) {
  for (mjvGLCamera& eye : scene->camera) {
    const float nearer = static_cast<float>(distance) / (10 * eye.frustum_near);
    if (nearer >= 1) continue;
    for (float* const side :
         {&eye.frustum_near, &eye.frustum_center, &eye.frustum_width,
          &eye.frustum_bottom, &eye.frustum_top}) {
      *side *= nearer;
    }
  }
}

absl::Status Failed(const MujocoError& error) {
  return MakeError(
      ErrorCode::kEngineFailed,
      absl::StrCat("frames: expected MuJoCo to draw, found: ", error.what()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SceneRenderer>> SceneRenderer::Create(
    const mjModel& model, const Options& options,
    std::shared_ptr<EglContext> gl) {
  if (gl == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(gl, EglContext::Create());
  }
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
        new SceneRenderer(std::move(gl), std::move(copy), options));
  } catch (const MujocoError& error) {
    return Failed(error);
  }
}

SceneRenderer::SceneRenderer(std::shared_ptr<EglContext> gl, ModelPtr model,
                             const Options& options)
    : gl_(std::move(gl)),
      model_(std::move(model)),
      endless_planes_(options.endless_planes),
      viewport_{.left = 0,
                .bottom = 0,
                .width = static_cast<int>(options.width),
                .height = static_cast<int>(options.height)},
      pixels_(size_t{options.width} * options.height * kRgbBytes),
      uploaded_terrain_(model_->hfield_data,
                        model_->hfield_data + model_->nhfielddata) {
  mjv_defaultOption(&visual_);
  mjv_defaultScene(&scene_);
  mjr_defaultContext(&context_);
  mjr_makeContext(model_.get(), &context_, mjFONTSCALE_150);
  mjr_setBuffer(mjFB_OFFSCREEN, &context_);
  // Large distances get values near 0, where floats are most exact.
  context_.readDepthMap = mjDEPTH_ZEROFAR;
  mjv_makeScene(model_.get(), &scene_,
                std::max(kLeastGeoms, 2 * static_cast<int>(model_->ngeom)) +
                    static_cast<int>(options.most_marks));
  scene_.flags[mjRND_SHADOW] = options.effects.shadows ? 1 : 0;
  scene_.flags[mjRND_REFLECTION] = options.effects.reflections ? 1 : 0;
}

SceneRenderer::~SceneRenderer() {
  mjv_freeScene(&scene_);
  mjr_freeContext(&context_);
}

absl::Status SceneRenderer::Draw(const SceneState& state, mjvCamera camera,
                                 const FrameTile& tile) {
  try {
    Resize(static_cast<uint32_t>(tile.row_bytes / kRgbBytes),
           static_cast<uint32_t>(tile.rows));
    UpdateScene(state, camera);
    AddMarks(state.marks);
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

absl::StatusOr<float> SceneRenderer::DrawDepth(const SceneState& state,
                                               mjvCamera camera, uint32_t width,
                                               uint32_t height,
                                               std::span<float> metres) {
  try {
    Resize(width, height);
    UpdateScene(state, camera);
    // Without colours, large distances are more exact.
    scene_.flags[mjRND_SEGMENT] = scene_.flags[mjRND_IDCOLOR] = 1;
    mjr_render(viewport_, &scene_, &context_);
    scene_.flags[mjRND_SEGMENT] = scene_.flags[mjRND_IDCOLOR] = 0;
    mjr_readPixels(nullptr, metres.data(), viewport_, &context_);
  } catch (const MujocoError& error) {
    scene_.flags[mjRND_SEGMENT] = scene_.flags[mjRND_IDCOLOR] = 0;
    return Failed(error);
  }
  for (uint32_t row = 0; row < height / 2; ++row) {
    std::swap_ranges(metres.begin() + row * width,
                     metres.begin() + (row + 1) * width,
                     metres.begin() + (height - 1 - row) * width);
  }
  const mjvGLCamera& eye = scene_.camera[0];
  const double near = eye.frustum_near;
  const double far = eye.frustum_far;
  for (float& value : metres) {
    // OpenGL's z is 1 at the near plane and 0 at the far one. It is linear in
    // the distance (glOrtho) or in its inverse (glFrustum).
    const double z = double{value};
    const double distance = eye.orthographic != 0
                                ? far - z * (far - near)
                                : far * near / (near + z * (far - near));
    value = static_cast<float>(distance);
  }
  return eye.frustum_far;
}

// Throws MujocoError, as the functions below.
void SceneRenderer::UpdateScene(const SceneState& state, mjvCamera camera) {
  const mjModel* model = model_.get();
  if (state.own_model != nullptr) {
    if (endless_planes_) MakePlanesEndless(state.own_model);
    model = state.own_model;
  }
  // Another renderer may have drawn in this context.
  mjr_restoreBuffer(&context_);
  UploadTerrain(*model);
  // mjv_updateScene puts endless planes under the scene's camera; without this
  // call that is the last tile's.
  mjv_updateCamera(model, state.data, &camera, &scene_);
  mjv_updateScene(model, state.data, &visual_, nullptr, &camera, mjCAT_ALL,
                  &scene_);
  if (camera.type != mjCAMERA_FIXED) KeepInView(camera.distance, &scene_);
}

// Uploads the height fields that differ from OpenGL's.
void SceneRenderer::UploadTerrain(const mjModel& model) {
  for (int field = 0; field < model.nhfield; ++field) {
    const mjtSize begin = model.hfield_adr[field];
    const mjtSize count =
        mjtSize{model.hfield_nrow[field]} * model.hfield_ncol[field];
    float* const have = uploaded_terrain_.data() + begin;
    const float* const wanted = model.hfield_data + begin;
    if (std::equal(wanted, wanted + count, have)) continue;
    std::copy_n(wanted, count, have);
    mjr_uploadHField(&model, &context_, field);
  }
}

void SceneRenderer::AddMarks(std::span<const DebugMark> marks) {
  constexpr double kLineWidth = 3;  // pixels
  // Metres; the width of MuJoCo's force arrows.
  const double arrow_width =
      double{model_->vis.scale.forcewidth} * model_->stat.meansize;
  for (const DebugMark& mark : marks) {
    if (scene_.ngeom >= scene_.maxgeom) return;
    mjvGeom* const geom = &scene_.geoms[scene_.ngeom++];
    const int type = mark.is_arrow ? mjGEOM_ARROW : mjGEOM_LINE;
    mjv_initGeom(geom, type, nullptr, nullptr, nullptr, mark.rgba.data());
    geom->castshadow = 0;
    const std::array<mjtNum, 3> from = {mark.from[0], mark.from[1],
                                        mark.from[2]};
    const std::array<mjtNum, 3> to = {mark.to[0], mark.to[1], mark.to[2]};
    mjv_connector(geom, type, mark.is_arrow ? arrow_width : kLineWidth,
                  from.data(), to.data());
    // MuJoCo 4.0.0 draws only half of the arrow's length.
    if (mark.is_arrow) geom->size[2] *= 2;
  }
}

void SceneRenderer::Resize(uint32_t width, uint32_t height) {
  const mjrRect wanted = {.left = 0,
                          .bottom = 0,
                          .width = static_cast<int>(width),
                          .height = static_cast<int>(height)};
  if (wanted.width == viewport_.width && wanted.height == viewport_.height) {
    return;
  }
  mjr_resizeOffscreen(wanted.width, wanted.height, &context_);
  viewport_ = wanted;
  pixels_.resize(size_t{width} * height * kRgbBytes);
}

absl::StatusOr<SceneSnapshot> SceneSnapshot::Create(
    std::shared_ptr<const mjModel> model) {
  TANDEM_ASSIGN_OR_RETURN(DataPtr data, MakeData(*model));
  return SceneSnapshot(std::move(model), std::move(data));
}

void SceneSnapshot::Take(const MujocoEnvironment& environment,
                         std::shared_ptr<const DebugMarks> marks) {
  const mjModel& model = environment.model();
  marks_ = std::move(marks);
  has_own_model_ = &model != model_.get();
  if (!status_.ok()) status_ = absl::OkStatus();
  try {
    if (has_own_model_) TakeModel(model);
    if (status_.ok()) mjv_copyData(data_.get(), &model, environment.data());
  } catch (const MujocoError& error) {
    status_ = MakeError(ErrorCode::kEngineFailed,
                        absl::StrCat("frames: ", error.what()));
  }
}

void SceneSnapshot::TakeModel(const mjModel& model) {
  if (own_model_ == nullptr) {
    absl::StatusOr<ModelPtr> copy = CopyModel(model);
    status_.Update(copy.status());
    if (copy.ok()) own_model_ = *std::move(copy);
    return;
  }
  // mjv_copyModel omits meshes and textures, which the renderer has, and
  // terrain, which is drawn.
  mjv_copyModel(own_model_.get(), &model);
  std::copy_n(model.hfield_data, model.nhfielddata, own_model_->hfield_data);
}

SceneState SceneSnapshot::state() {
  SceneState state = {.data = data_.get()};
  if (has_own_model_) state.own_model = own_model_.get();
  if (marks_ != nullptr) state.marks = *marks_;
  return state;
}

}  // namespace tandem
