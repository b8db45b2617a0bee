#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/classic_control/classic_frames.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/core/environment_engine.h"
#include "engine_adapter/frames/canvas.h"
#include "engine_adapter/scene/fixed_scene.h"
#include "engine_adapter/scene/glb_builder.h"

namespace tandem {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr float kLargestTorque = 2;
constexpr double kLargestSpeed = 8;
constexpr double kPendulumStepSecs = 0.05;
constexpr double kDefaultGravity = 10;
constexpr uint32_t kPendulumEpisodeSteps = 200;

// Python's %: the result has the divisor's sign, which is positive here.
double Modulo(double value, double divisor) {
  const double remainder = std::fmod(value, divisor);
  return remainder < 0 ? remainder + divisor : remainder;
}

// Returns the same angle in -pi .. pi.
double Normalized(double angle) { return Modulo(angle + kPi, 2 * kPi) - kPi; }

// Operations are in Gymnasium's order and width, so that the rounding is the
// same: values that depend on the torque alone are float32. Mass and length
// are 1.
class Pendulum final : public CopiedEnvironment<Pendulum> {
 public:
  // The state that an image shows.
  struct Pose {
    double theta = 0;
    float torque = 0;
  };
  static constexpr CanvasSize kCanvasSize = {.width = 500, .height = 500};

  explicit Pendulum(double gravity) : gravity_(gravity) {}

  void Reset(EnvRandom& random, const EnvironmentRow& row) override {
    theta_ = random.Uniform(-kPi, kPi);
    theta_dot_ = random.Uniform(-1, 1);
    torque_ = 0;
    Observe(row.obs);
  }

  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override {
    const float action = actions[0];
    const float torque = std::clamp(action, -kLargestTorque, kLargestTorque);
    torque_ = torque;
    const double angle = Normalized(theta_);
    const float torque_cost = 0.001F * (torque * torque);
    const double cost = angle * angle + 0.1 * (theta_dot_ * theta_dot_) +
                        static_cast<double>(torque_cost);
    const float torque_acc = 3.0F * torque;
    const double acc =
        3 * gravity_ / 2 * std::sin(theta_) + static_cast<double>(torque_acc);
    theta_dot_ = std::clamp(theta_dot_ + acc * kPendulumStepSecs,
                            -kLargestSpeed, kLargestSpeed);
    theta_ += theta_dot_ * kPendulumStepSecs;
    Observe(row.obs);
    return {.reward = static_cast<float>(-cost), .terminated = false};
  }

  template <typename Bytes, typename State>
  static void Transfer(Bytes& bytes, State& state) {
    bytes.Values(state.theta_, state.theta_dot_, state.torque_);
  }

  Pose pose() const { return {.theta = theta_, .torque = torque_}; }

  // Sizes, places and colours are Gymnasium's.
  static void Draw(const Pose& pose, Canvas* canvas) {
    constexpr double kScale = kCanvasSize.width / 4.4;
    constexpr double kHalfWidth = 0.1 * kScale;
    constexpr Color kRod = {.red = 204, .green = 77, .blue = 77};
    constexpr Point kMiddle = {kCanvasSize.width / 2, kCanvasSize.height / 2};
    const Turn turn(pose.theta + kPi / 2, kMiddle);
    canvas->Polygon({{turn({0, -kHalfWidth}), turn({0, kHalfWidth}),
                      turn({kScale, kHalfWidth}), turn({kScale, -kHalfWidth})}},
                    kRod);
    canvas->Circle(kMiddle, kHalfWidth, kRod);
    canvas->Circle(turn({kScale, 0}), kHalfWidth, kRod);
    DrawTorque(pose.torque, kScale, kMiddle, canvas);
    canvas->Circle(kMiddle, 0.05 * kScale, kBlack);
  }

 private:
  // Draws three quarters of a circle with an arrowhead. The size is
  // proportional to the torque. The shape is Gymnasium's image, with sides of
  // length 1.
  static void DrawTorque(float torque, double scale, Point middle,
                         Canvas* canvas) {
    constexpr Point kCentre = {0.526, 0.5};
    constexpr Point kOuter = {0.474, 0.5};
    constexpr Point kInner = {0.446, 0.469};
    constexpr std::array<Point, 4> kHead = {
        {{0.065, 0.645}, {0.135, 0.458}, {0.065, 0.503}, {0, 0.458}}};
    constexpr int kCorners = 91;  // on each side of the arc
    const double side = scale * std::abs(torque) / 2;
    auto placed = [&](Point point) -> Point {
      const double x = torque > 0 ? 1 - point.x : point.x;
      return {middle.x + (x - 0.5) * side, middle.y + (point.y - 0.5) * side};
    };
    std::array<Point, 2 * kCorners> arc;
    for (int i = 0; i < kCorners; ++i) {
      const double angle = kPi / 2 - 1.5 * kPi * i / (kCorners - 1);
      const double cos = std::cos(angle);
      const double sin = std::sin(angle);
      arc[i] = placed({kCentre.x + kOuter.x * cos, kCentre.y + kOuter.y * sin});
      arc[2 * kCorners - 1 - i] =
          placed({kCentre.x + kInner.x * cos, kCentre.y + kInner.y * sin});
    }
    canvas->FillBlack(arc);
    std::array<Point, kHead.size()> head;
    std::ranges::transform(kHead, head.begin(), placed);
    canvas->FillBlack(head);
  }

  void Observe(std::span<float> obs) const {
    obs[0] = static_cast<float>(std::cos(theta_));
    obs[1] = static_cast<float>(std::sin(theta_));
    obs[2] = static_cast<float>(theta_dot_);
  }

  double gravity_;
  double theta_ = 0;
  double theta_dot_ = 0;
  float torque_ = 0;  // of the last step of this episode
};

// Metres; sizes and colours are the image's.
SceneModel MakePendulumScene() {
  GlbBuilder glb(kYUp);
  const GlbMaterial red = {.rgba = {0.8F, 0.3F, 0.3F, 1}};
  const int rod = glb.AddMovingNode({.name = "rod"});
  // A capsule's axis is z; the rod's is x.
  glb.AddNode(rod,
              {.name = "capsule",
               .position = {0.5F, 0, 0},
               .rotation = {0, 0.70710678F, 0, 0.70710678F},
               .mesh = glb.AddMesh(glb.AddGeometry(Capsule(0.1F, 0.5F)), red)});
  glb.AddNode(-1, {.name = "axle",
                   .scale = {0.05F, 0.05F, 0.15F},
                   .mesh = glb.AddMesh(glb.AddGeometry(Cylinder()),
                                       {.rgba = {0.1F, 0.1F, 0.1F, 1}})});
  return std::move(glb).Take({.extent = 2.2F, .up = {0, 1, 0}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakePendulum(TaskRequest request) {
  const double gravity = request.options.Number("g", kDefaultGravity);
  TANDEM_RETURN_IF_ERROR(request.options.Finish());
  std::vector<std::unique_ptr<Environment>> environments(request.num_envs);
  std::vector<const Pendulum*> drawn;
  drawn.reserve(environments.size());
  for (std::unique_ptr<Environment>& environment : environments) {
    auto made = std::make_unique<Pendulum>(gravity);
    drawn.push_back(made.get());
    environment = std::move(made);
  }
  return std::make_unique<EnvironmentEngine>(
      EngineSchema{
          .task = "Pendulum-v1",
          .obs_size = 3,
          .act_size = 1,
          .description =
              {.observation_space = BoxSpace{.low = {-1, -1, -kLargestSpeed},
                                             .high = {1, 1, kLargestSpeed}},
               .action_space =
                   BoxSpace{.low = {-kLargestTorque}, .high = {kLargestTorque}},
               .max_episode_steps =
                   request.max_episode_steps.value_or(kPendulumEpisodeSteps)},
          // Gymnasium's names, in Observe's order.
          .observation_names = {"x = cos(theta)", "y = sin(theta)",
                                "angular velocity"},
          .action_names = {"torque"}},
      std::move(environments), request.threads,
      EnvironmentFittings{
          .step_secs = kPendulumStepSecs,
          .frames = std::make_unique<ClassicFrames<Pendulum>>(drawn),
          .images = std::make_unique<ClassicFrames<Pendulum>>(drawn),
          .live_scene = std::make_unique<FixedScene>(
              MakePendulumScene, [drawn](uint32_t env, std::span<float> poses) {
                PutPose({0, 0, 0}, drawn[env]->pose().theta + kPi / 2, poses);
              })});
}

}  // namespace tandem
