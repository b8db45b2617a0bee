#include "engine_adapter/conformance/reference/counter_engine.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/scene/glb_builder.h"

namespace tandem {
namespace {

constexpr double kStepSecs = 0.1;  // for the real time mode, and for speeds

std::vector<std::string> ObservationNames(uint32_t obs_size) {
  std::vector<std::string> names = {"episode steps", "first action",
                                    "seed steps", "episode number"};
  names.resize(std::min(names.size(), size_t{obs_size}));
  names.reserve(obs_size);
  for (size_t k = names.size(); k < obs_size; ++k) {
    names.push_back(absl::StrCat("sum + ", k));
  }
  return names;
}

std::vector<std::string> ActionNames(uint32_t act_size) {
  std::vector<std::string> names;
  names.reserve(act_size);
  for (uint32_t k = 0; k < act_size; ++k) {
    names.push_back(absl::StrCat("action ", k));
  }
  return names;
}

// Copies the given actions, except those that the service mujoco has set.
// Returns the sum of the taken actions.
float TakeActions(std::span<const float> given, CounterState::Env* env,
                  std::span<float> taken) {
  float sum = 0;
  for (size_t k = 0; k < given.size(); ++k) {
    taken[k] = given[k];
    sum += taken[k];
  }
  if (env->controls.empty()) return sum;
  for (const auto& [actuator, value] : env->controls) taken[actuator] = value;
  env->controls.clear();
  return std::accumulate(taken.begin(), taken.end(), 0.0F);
}

// Returns where the next episode's counter starts.
CounterPlace DrawStart(CounterState::Env* env) {
  if (!env->noise) return {};
  const auto draw = [&](size_t axis) {
    return static_cast<float>(double{env->noise->metres[axis]} *
                              env->noise->random.StandardNormal());
  };
  return {.x = draw(0), .y = draw(1), .z = draw(2)};
}

// The counter is a ball that leaves the origin.
SceneModel MakeScene() {
  GlbBuilder glb(kYUp);
  const int ball =
      glb.AddMesh(glb.AddGeometry(Sphere()), {.rgba = {0.2F, 0.5F, 0.9F, 1}});
  glb.AddMovingNode(
      {.name = "counter", .mesh = ball, .extras = {{"entity", kCounterId}}});
  return std::move(glb).Take({.extent = 50, .up = {0, 1, 0}, .follow = 0});
}

}  // namespace

CounterEngine::CounterEngine(const Options& options)
    : options_(options),
      schema_({.task = "Counter",
               .num_envs = options.num_envs,
               .obs_size = options.obs_size,
               .act_size = options.act_size,
               .description = {.own_methods = CounterMethods::Methods()},
               .observation_names = ObservationNames(options.obs_size),
               .action_names = ActionNames(options.act_size)}),
      state_(options.num_envs, options.act_size),
      randomization_(&state_),
      joints_(&state_, kStepSecs, schema_.action_names),
      scene_(&state_),
      live_scene_(
          MakeScene,
          [this](uint32_t env, std::span<float> poses) {
            const CounterPlace at = state_.envs[env].place();
            PutPose({double{at.x}, double{at.y}, double{at.z}}, 0, poses);
          }),
      marks_(options.num_envs),
      methods_(&state_),
      camera_(&state_, &marks_) {
  std::random_device entropy;
  for (CounterState::Env& env : state_.envs) env.random.seed(entropy());
}

absl::Status CounterEngine::Reset(std::span<const ResetRequest> requests,
                                  const ResetIo& io) {
  for (const ResetRequest& request : requests) {
    CounterState::Env& env = state_.envs[request.env];
    if (request.seed) {
      env.random.seed(*request.seed);
      env.seed_steps = 0;
    }
    // 24 bits; a float represents them exactly.
    env.episode_number = static_cast<float>(env.random() >> 40) / (1 << 24);
    env.episode_steps = 0;
    env.start = DrawStart(&env);
    std::ranges::fill(state_.ActionsOf(request.env), 0.0F);
    Observe(env, 0, 0,
            io.obs.subspan(size_t{request.env} * schema_.obs_size,
                           schema_.obs_size));
  }
  return absl::OkStatus();
}

absl::Status CounterEngine::Step(std::span<const uint32_t> envs,
                                 const StepIo& io) {
  for (const uint32_t i : envs) {
    CounterState::Env& env = state_.envs[i];
    const std::span<float> actions = state_.ActionsOf(i);
    const float sum = TakeActions(
        io.actions.subspan(size_t{i} * schema_.act_size, schema_.act_size),
        &env, actions);
    ++env.episode_steps;
    ++env.seed_steps;
    io.rewards[i] = sum;
    io.terminateds[i] = env.episode_steps == options_.terminate_after ? 1 : 0;
    io.truncateds[i] = env.episode_steps == options_.truncate_after ? 1 : 0;
    Observe(env, actions[0], sum,
            io.obs.subspan(size_t{i} * schema_.obs_size, schema_.obs_size));
  }
  return absl::OkStatus();
}

void CounterEngine::ClearClientState() {
  for (CounterState::Env& env : state_.envs) {
    env.controls.clear();
    env.noise.reset();  // the reset that follows moves the counter back
  }
  marks_.Clear();
}

double CounterEngine::step_secs() const { return kStepSecs; }

void CounterEngine::Observe(const CounterState::Env& env, float first_action,
                            float action_sum, std::span<float> obs) const {
  const std::array<float, 4> head = {
      static_cast<float>(env.episode_steps), first_action,
      static_cast<float>(env.seed_steps), env.episode_number};
  const size_t known = std::min(head.size(), obs.size());
  std::copy_n(head.begin(), known, obs.begin());
  for (size_t k = known; k < obs.size(); ++k) {
    obs[k] = action_sum + static_cast<float>(k);
  }
}

}  // namespace tandem
