#include "engine_adapter/mujoco/render/scene_renderer.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine_adapter/frame_source.h"
#include "engine_adapter/frames/frame_grid.h"
#include "engine_adapter/mujoco/model/model_file.h"

namespace tandem {
namespace {

// In the view of the model's free camera, a red ball is at the upper right and
// a blue one at the lower left, over a reflecting floor.
constexpr char kScene[] = R"(<mujoco>
  <asset><material name="mirror" reflectance="0.8"/></asset>
  <worldbody>
    <light pos="0 0 3" castshadow="true"/>
    <geom type="plane" size="3 3 .1" pos="0 0 -1" material="mirror"/>
    <geom type="sphere" size="0.3" pos="1 0 1" rgba="1 0 0 1"/>
    <geom type="sphere" size="0.3" pos="-1 0 -0.6" rgba="0 0 1 1"/>
  </worldbody>
</mujoco>)";

ModelPtr Compiled(const char* xml) {
  std::array<char, 500> error = {};
  mjSpec* const spec =
      mj_parseXMLString(xml, nullptr, error.data(), error.size());
  EXPECT_NE(spec, nullptr) << error.data();
  ModelPtr model(mj_compile(spec, nullptr));
  mj_deleteSpec(spec);
  return model;
}

ModelPtr Scene() { return Compiled(kScene); }

// The scene, rendered into the second of a frame's four tiles; others are 77.
class Drawn {
 public:
  Drawn(uint32_t width, uint32_t height, const FrameEffects& effects = {})
      : options_({.width = width, .height = height, .envs = {0, 0, 0, 0}}) {
    const ModelPtr model = Scene();
    const DataPtr data = MakeData(*model).value();
    mj_forward(model.get(), data.get());
    mjvCamera camera;
    mjv_defaultFreeCamera(model.get(), &camera);
    camera.elevation = -10;
    const FrameGrid grid = FrameGrid::Of(options_);
    pixels.assign(grid.FrameBytes(), std::byte{77});
    absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
        SceneRenderer::Create(
            *model, {.width = width, .height = height, .effects = effects});
    EXPECT_TRUE(renderer.ok()) << renderer.status();
    if (!renderer.ok()) return;
    const absl::Status status =
        (*renderer)->Draw({.data = data.get()}, camera, grid.Tile(pixels, 1));
    EXPECT_TRUE(status.ok()) << status;
  }

  // Returns the mean position of the pixels that have only one colour channel.
  std::pair<double, double> MiddleOf(size_t channel) const {
    double x_sum = 0;
    double y_sum = 0;
    double count = 0;
    for (uint32_t y = 0; y < options_.height; ++y) {
      for (uint32_t x = 0; x < options_.width; ++x) {
        const size_t at =
            (size_t{y} * 2 * options_.width + options_.width + x) * kRgbBytes;
        const auto value = [&](size_t c) {
          return std::to_integer<int>(pixels[at + c]);
        };
        if (value(channel) < 100 || value(1) > 20 || value(2 - channel) > 20) {
          continue;
        }
        x_sum += x;
        y_sum += y;
        ++count;
      }
    }
    EXPECT_GT(count, 0);
    return {x_sum / count / options_.width, y_sum / count / options_.height};
  }

  std::vector<std::byte> pixels;

 private:
  FrameOptions options_;
};

TEST(SceneRenderer, UpIsUpAndLeftIsLeft) {
  const Drawn drawn(200, 100);
  const auto [red_x, red_y] = drawn.MiddleOf(0);
  const auto [blue_x, blue_y] = drawn.MiddleOf(2);
  EXPECT_GT(red_x, 0.5);
  EXPECT_LT(red_y, 0.5);
  EXPECT_LT(blue_x, 0.5);
  EXPECT_GT(blue_y, 0.5);
}

TEST(SceneRenderer, WritesItsTileAndNothingBeyond) {
  const Drawn drawn(33, 21);
  const size_t row_bytes = size_t{2} * 33 * 3;
  size_t written = 0;
  for (size_t at = 0; at < drawn.pixels.size(); ++at) {
    const bool inside = at / row_bytes < 21 && at % row_bytes >= 33 * 3;
    if (!inside) {
      ASSERT_EQ(drawn.pixels[at], std::byte{77}) << at;
    } else if (drawn.pixels[at] != std::byte{77}) {
      ++written;
    }
  }
  EXPECT_GT(written, 33U * 21 * 3 / 2);
}

// Returns the number of pixels that are not black, if the world's objects are
// `metres` away from the point that the camera looks at.
int64_t SeenAt(double metres, bool endless_planes) {
  const ModelPtr model = Scene();
  const DataPtr data = MakeData(*model).value();
  mj_forward(model.get(), data.get());
  mjvCamera camera;
  mjv_defaultFreeCamera(model.get(), &camera);
  camera.lookat[0] += metres;
  absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
      SceneRenderer::Create(
          *model,
          {.width = 64, .height = 64, .endless_planes = endless_planes});
  EXPECT_TRUE(renderer.ok()) << renderer.status();
  if (!renderer.ok()) return -1;
  std::vector<std::byte> pixels(64 * 64 * 3);
  const FrameTile tile = {
      .first = pixels.data(), .stride = 192, .row_bytes = 192, .rows = 64};
  EXPECT_TRUE((*renderer)->Draw({.data = data.get()}, camera, tile).ok());
  return std::ranges::count_if(
      pixels, [](std::byte value) { return value != std::byte{0}; });
}

TEST(SceneRenderer, DrawsAnEnvironmentsOwnModelForItsDrawOnly) {
  const ModelPtr model = Scene();
  const ModelPtr own = Scene();
  for (int i = 0; i < 4 * model->ngeom; ++i) own->geom_rgba[i] = 0.5F;
  const DataPtr data = MakeData(*model).value();
  mj_forward(model.get(), data.get());
  mjvCamera camera;
  mjv_defaultFreeCamera(model.get(), &camera);
  absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
      SceneRenderer::Create(*model, {.width = 64, .height = 64});
  ASSERT_TRUE(renderer.ok()) << renderer.status();
  const auto draw = [&](mjModel* own_model, uint32_t side) {
    std::vector<std::byte> pixels(size_t{side} * side * 3);
    const FrameTile tile = {.first = pixels.data(),
                            .stride = size_t{side} * 3,
                            .row_bytes = size_t{side} * 3,
                            .rows = side};
    EXPECT_TRUE(
        (*renderer)
            ->Draw({.data = data.get(), .own_model = own_model}, camera, tile)
            .ok());
    return pixels;
  };
  const std::vector<std::byte> shared = draw(nullptr, 64);
  EXPECT_NE(draw(own.get(), 64), shared);
  EXPECT_EQ(draw(nullptr, 64), shared);
  // An image of another size changes nothing either.
  EXPECT_NE(draw(nullptr, 200), shared);
  EXPECT_EQ(draw(nullptr, 64), shared);
}

// A hill of a given height, in the middle of the field.
constexpr char kHill[] = R"(<mujoco>
  <asset><hfield name="hill" nrow="9" ncol="9" size="1 1 1 .1"/></asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="hfield" hfield="hill" rgba="1 1 1 1"/>
  </worldbody>
</mujoco>)";

TEST(SceneRenderer, TerrainIsThatOfTheEnvironmentsOwnModel) {
  const ModelPtr model = Compiled(kHill);
  const ModelPtr own = Compiled(kHill);
  own->hfield_data[4 * 9 + 4] = 1;
  const DataPtr data = MakeData(*model).value();
  mj_forward(model.get(), data.get());
  mjvCamera camera;
  mjv_defaultFreeCamera(model.get(), &camera);
  absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
      SceneRenderer::Create(*model, {.width = 64, .height = 64});
  ASSERT_TRUE(renderer.ok()) << renderer.status();
  std::vector<std::vector<std::byte>> images;
  for (mjModel* const drawn : {static_cast<mjModel*>(nullptr), own.get(),
                               static_cast<mjModel*>(nullptr), own.get()}) {
    images.emplace_back(64 * 64 * 3);
    const FrameTile tile = {.first = images.back().data(),
                            .stride = 192,
                            .row_bytes = 192,
                            .rows = 64};
    ASSERT_TRUE(
        (*renderer)
            ->Draw({.data = data.get(), .own_model = drawn}, camera, tile)
            .ok());
  }
  EXPECT_NE(images[1], images[0]);
  EXPECT_EQ(images[2], images[0]);
  EXPECT_EQ(images[3], images[1]);
}

TEST(SceneRenderer, InfinitePlanesAreVisibleAtAnyDistance) {
  EXPECT_GT(SeenAt(0, false), 0);
  EXPECT_EQ(SeenAt(1000, false), 0);
  EXPECT_GT(SeenAt(1000, true), 64 * 64);
}

TEST(SceneRenderer, EachEffectChangesTheImage) {
  const std::vector<std::byte> plain = Drawn(64, 64).pixels;
  EXPECT_EQ(Drawn(64, 64).pixels, plain);
  EXPECT_NE(Drawn(64, 64, {.shadows = true}).pixels, plain);
  EXPECT_NE(Drawn(64, 64, {.reflections = true}).pixels, plain);
  EXPECT_NE(Drawn(64, 64, {.multisampling = true}).pixels, plain);
}

}  // namespace
}  // namespace tandem
