#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = kPoleMass + 1.0;
constexpr double kHalfLength = 0.5;
constexpr double kPoleMassLength = kPoleMass * kHalfLength;
constexpr double kForce = 10.0;
constexpr double kCartPoleStepSecs = 0.02;
constexpr double kLargestAngle = 12 * 2 * std::numbers::pi / 360;
constexpr double kLargestPosition = 2.4;
constexpr double kResetNoise = 0.05;
constexpr uint32_t kCartPoleEpisodeSteps = 500;

bool PushesRight(float action) {
  if (action == 0) return false;
  if (action == 1) return true;
  throw std::invalid_argument(
      absl::StrCat("action: expected 0 (left) or 1 (right), found ", action));
}

// Operations are in Gymnasium's order, so that the rounding is the same.
class CartPole final : public CopiedEnvironment<CartPole> {
 public:
  // The state that an image shows.
  struct Pose {
    double x = 0;
    double theta = 0;
  };
  static constexpr CanvasSize kCanvasSize = {.width = 600, .height = 400};

  explicit CartPole(bool sutton_barto_reward)
      : sutton_barto_reward_(sutton_barto_reward) {}

  void Reset(EnvRandom& random, const EnvironmentRow& row) override {
    x_ = random.Uniform(-kResetNoise, kResetNoise);
    x_dot_ = random.Uniform(-kResetNoise, kResetNoise);
    theta_ = random.Uniform(-kResetNoise, kResetNoise);
    theta_dot_ = random.Uniform(-kResetNoise, kResetNoise);
    has_terminated_ = false;
    Observe(row.obs);
  }

  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override {
    Move(PushesRight(actions[0]) ? kForce : -kForce);
    Observe(row.obs);
    const bool terminated = x_ < -kLargestPosition || x_ > kLargestPosition ||
                            theta_ < -kLargestAngle || theta_ > kLargestAngle;
    const float reward = Reward(terminated);
    has_terminated_ |= terminated;
    return {.reward = reward, .terminated = terminated};
  }

  template <typename Bytes, typename State>
  static void Transfer(Bytes& bytes, State& state) {
    bytes.Values(state.x_, state.x_dot_, state.theta_, state.theta_dot_,
                 state.has_terminated_);
  }

  Pose pose() const { return {.x = x_, .theta = theta_}; }

  // Sizes, places and colours are Gymnasium's.
  static void Draw(const Pose& pose, Canvas* canvas) {
    constexpr double kScale = kCanvasSize.width / (2 * kLargestPosition);
    constexpr double kTrackY = 100;
    constexpr double kAxleY = kTrackY + 7.5;
    constexpr double kPoleLength = 2 * kHalfLength * kScale;
    constexpr double kHalfWidth = 5;  // the pole's
    const double x = pose.x * kScale + kCanvasSize.width / 2;
    canvas->Polygon({{{x - 25, kTrackY - 15},
                      {x - 25, kTrackY + 15},
                      {x + 25, kTrackY + 15},
                      {x + 25, kTrackY - 15}}},
                    kBlack);
    const Turn turn(-pose.theta, {x, kAxleY});
    canvas->Polygon({{turn({-kHalfWidth, -kHalfWidth}),
                      turn({-kHalfWidth, kPoleLength - kHalfWidth}),
                      turn({kHalfWidth, kPoleLength - kHalfWidth}),
                      turn({kHalfWidth, -kHalfWidth})}},
                    {.red = 202, .green = 152, .blue = 101});
    canvas->Circle({x, kAxleY}, kHalfWidth,
                   {.red = 129, .green = 132, .blue = 203});
    canvas->Polygon({{{-1, kTrackY}, {kCanvasSize.width, kTrackY}}}, kBlack);
  }

 private:
  void Move(double force) {
    const double cos = std::cos(theta_);
    const double sin = std::sin(theta_);
    const double push =
        (force + kPoleMassLength * (theta_dot_ * theta_dot_) * sin) /
        kTotalMass;
    const double theta_acc =
        (kGravity * sin - cos * push) /
        (kHalfLength * (4.0 / 3.0 - kPoleMass * (cos * cos) / kTotalMass));
    const double x_acc = push - kPoleMassLength * theta_acc * cos / kTotalMass;
    x_ += kCartPoleStepSecs * x_dot_;
    x_dot_ += kCartPoleStepSecs * x_acc;
    theta_ += kCartPoleStepSecs * theta_dot_;
    theta_dot_ += kCartPoleStepSecs * theta_acc;
  }

  float Reward(bool terminated) const {
    if (sutton_barto_reward_) return terminated ? -1 : 0;
    return terminated && has_terminated_ ? 0 : 1;
  }

  void Observe(std::span<float> obs) const {
    obs[0] = static_cast<float>(x_);
    obs[1] = static_cast<float>(x_dot_);
    obs[2] = static_cast<float>(theta_);
    obs[3] = static_cast<float>(theta_dot_);
  }

  bool sutton_barto_reward_;
  double x_ = 0;
  double x_dot_ = 0;
  double theta_ = 0;
  double theta_dot_ = 0;
  bool has_terminated_ = false;  // in this episode
};

// Metres, as the state is; sizes are the image's.
SceneModel MakeCartPoleScene() {
  constexpr float kMetres = 4.8F / 600;  // a pixel of the image
  GlbBuilder glb(kYUp);
  const int box = glb.AddGeometry(Box(1, 1, 1));
  const int black = glb.AddMesh(box, {.rgba = {0.1F, 0.1F, 0.1F, 1}});
  const int brown = glb.AddMesh(box, {.rgba = {0.79F, 0.6F, 0.4F, 1}});
  const int cart = glb.AddMovingNode({.name = "cart"});
  glb.AddNode(cart, {.name = "carriage",
                     .position = {0, -7.5F * kMetres, 0},
                     .scale = {25 * kMetres, 15 * kMetres, 15 * kMetres},
                     .mesh = black});
  const int pole = glb.AddMovingNode({.name = "pole"});
  glb.AddNode(pole, {.name = "rod",
                     .position = {0, static_cast<float>(kHalfLength), 0},
                     .scale = {5 * kMetres, static_cast<float>(kHalfLength),
                               5 * kMetres},
                     .mesh = brown});
  glb.AddNode(-1, {.name = "track",
                   .position = {0, -7.5F * kMetres, 0},
                   .scale = {static_cast<float>(kLargestPosition), kMetres / 2,
                             kMetres / 2},
                   .mesh = black});
  return std::move(glb).Take(
      {.extent = 3, .center = {0, 0.5F, 0}, .up = {0, 1, 0}, .follow = -1});
}

void Place(const CartPole::Pose& pose, std::span<float> poses) {
  PutPose({pose.x, 0, 0}, 0, poses.first(kPoseFloats));
  PutPose({pose.x, 0, 0}, -pose.theta, poses.subspan(kPoseFloats));
}

// Twice the termination limits, rounded to float32.
BoxSpace ObservationSpace() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr auto kPosition = static_cast<float>(2 * kLargestPosition);
  constexpr auto kAngle = static_cast<float>(2 * kLargestAngle);
  return {.low = {-kPosition, -kInfinity, -kAngle, -kInfinity},
          .high = {kPosition, kInfinity, kAngle, kInfinity}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeCartPole(TaskRequest request) {
  const bool sutton_barto_reward =
      request.options.Bool("sutton_barto_reward", false);
  TANDEM_RETURN_IF_ERROR(request.options.Finish());
  std::vector<std::unique_ptr<Environment>> environments(request.num_envs);
  std::vector<const CartPole*> drawn;
  drawn.reserve(environments.size());
  for (std::unique_ptr<Environment>& environment : environments) {
    auto made = std::make_unique<CartPole>(sutton_barto_reward);
    drawn.push_back(made.get());
    environment = std::move(made);
  }
  return std::make_unique<EnvironmentEngine>(
      EngineSchema{.task = "CartPole-v1",
                   .obs_size = 4,
                   .act_size = 1,
                   .description = {.observation_space = ObservationSpace(),
                                   .action_space = DiscreteSpace{.n = 2},
                                   .max_episode_steps =
                                       request.max_episode_steps.value_or(
                                           kCartPoleEpisodeSteps)},
                   // Gymnasium's names, in Observe's order.
                   .observation_names = {"cart position", "cart velocity",
                                         "pole angle", "pole angular velocity"},
                   .action_names = {"push to the right"}},
      std::move(environments), request.threads,
      EnvironmentFittings{
          .step_secs = kCartPoleStepSecs,
          .frames = std::make_unique<ClassicFrames<CartPole>>(drawn),
          .images = std::make_unique<ClassicFrames<CartPole>>(drawn),
          .live_scene = std::make_unique<FixedScene>(
              MakeCartPoleScene, [drawn](uint32_t env, std::span<float> poses) {
                Place(drawn[env]->pose(), poses);
              })});
}

}  // namespace tandem
