#include "engine_adapter/conformance/reference/counter_camera.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "engine_adapter/conformance/reference/counter_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/frames/canvas.h"

namespace tandem {
namespace {

// A unit of the canvas is a metre; (0, 0) is the middle of the lower left unit.
constexpr CanvasSize kView = {.width = 2 * kCameraPlace.x + 1,
                              .height = 2 * kCameraPlace.y + 1};
constexpr uint32_t kWidth = 320;  // pixels
constexpr uint32_t kHeight = 240;
constexpr double kBarHeight = 10;
constexpr double kArrowTip = 1;
constexpr Color kBarColor = {.red = 40, .green = 90, .blue = 200};

// The part of the state that an image shows.
struct Picture {
  CounterPlace start;
  CounterPlace place;
  std::shared_ptr<const DebugMarks> marks;  // nullptr: none
};

Point PointOf(const std::array<float, 3>& at) {
  return {.x = at[0], .y = at[1]};
}

Color ColorOf(const std::array<float, 4>& rgba) {
  const auto part = [](float share) {
    return static_cast<uint8_t>(std::lround(255 * share));
  };
  return {.red = part(rgba[0]), .green = part(rgba[1]), .blue = part(rgba[2])};
}

void Paint(const Picture& picture, const FrameTile& tile) {
  Canvas canvas(tile, kView);
  const double bottom = picture.start.y;
  const double top = bottom + kBarHeight;
  const std::array<Point, 4> bar = {{{picture.start.x, bottom},
                                     {picture.start.x, top},
                                     {picture.place.x, top},
                                     {picture.place.x, bottom}}};
  canvas.Polygon(bar, kBarColor);
  if (picture.marks == nullptr) return;
  for (const DebugMark& mark : *picture.marks) {
    const std::array<Point, 2> line = {{PointOf(mark.from), PointOf(mark.to)}};
    const Color color = ColorOf(mark.rgba);
    canvas.Polygon(line, color);
    if (mark.is_arrow) canvas.Circle(line[1], kArrowTip, color);
  }
}

}  // namespace

CounterCamera::CounterCamera(const CounterState* state,
                             const DebugCanvas* marks)
    : state_(state), marks_(marks) {
  rpc::CameraInfoT camera;
  camera.id = kCameraId;
  camera.name = "camera";
  cameras_.push_back(std::move(camera));
}

absl::Status CounterCamera::Draw(const ImageRequest& request,
                                 std::weak_ptr<const void> wanted, Done done) {
  if (request.depth) {
    return MakeError(ErrorCode::kUnsupported,
                     "kind: expected COLOR, found DEPTH; the image is flat");
  }
  ImageRequest sized = request;
  if (sized.width == 0) sized.width = kWidth;
  if (sized.height == 0) sized.height = kHeight;
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<const void> held,
                          queue_.Admit(sized));
  const CounterState::Env& env = state_->envs[request.env];
  const Picture picture = {.start = env.start,
                           .place = env.place(),
                           .marks = marks_->Marks(request.env)};
  queue_.Add({.held = std::move(held),
              .wanted = std::move(wanted),
              .render =
                  [sized, picture] {
                    return RenderImage(sized, [&](const FrameTile& tile) {
                      Paint(picture, tile);
                      return absl::OkStatus();
                    });
                  },
              .done = std::move(done)});
  return absl::OkStatus();
}

}  // namespace tandem
