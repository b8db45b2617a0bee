// trivial_engine: an engine with known results, for tests of the Python client
// and for measurements of the cost of an engine.
//
// Data flow: actions -> obs and rewards by the rules below.
// Takes the flags of a Tandem engine server.
//
//   obs[env] = {steps in this episode, seed of the episode (-1: none given),
//               the last action's first value, env, env, ...}
//   reward   = sum of the environment's actions
//   An episode is truncated after 10 steps; an action of 100 or more terminates
//   it. With --fields the region has no float32 rows: the action is an int64,
//   the observation uint8[2, 3] "/image", filled with the steps, and int64
//   "/seed"; a tenth of the action is the reward.
//   The first environment's first action can make the engine misbehave:
//     -1001 reports a failure   -1002 exits at once   -1003 answers no more
//     -1004 prints 100 lines, then exits at once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"
#include "transport/session/engine_side.h"
#include "transport/step_arrays.h"

ABSL_FLAG(std::string, name, "tandem", "the region");
ABSL_FLAG(std::string, task, "Trivial-v0",
          "must be Trivial-v0 or HalfCheetah-v5");
ABSL_FLAG(std::string, model, "", "a file that must exist, and is not read");
ABSL_FLAG(uint32_t, num_envs, 1, "environments");
ABSL_FLAG(uint32_t, obs_size, 17, "at least 4");
ABSL_FLAG(uint32_t, act_size, 6, "at least 1");
ABSL_FLAG(uint32_t, episode_steps, 10, "steps before an episode is truncated");
ABSL_FLAG(int32_t, threads, 0, "ignored");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt,
          "environment i: seed + i");
ABSL_FLAG(int32_t, launcher_fd, -1, "leave when this is closed at the far end");
ABSL_FLAG(bool, fields, false, "typed fields instead of float32 rows");

namespace tandem {
namespace {

EngineSide* running = nullptr;

// Writers: the SIGTERM handler and the launcher's watch; reader: the engine's
// thread, which reads only this value.
std::atomic<bool> stopping{false};

void Stop() {
  // relaxed: no other data depends on it.
  stopping.store(true, std::memory_order_relaxed);
  running->RequestStop();
}

class TrivialEngine {
 public:
  TrivialEngine(EngineSide* side, uint32_t episode_steps)
      : side_(side),
        arrays_(side->arrays()),
        action_(arrays_.Find(FieldRole::kAction, "")),
        image_(arrays_.Find(FieldRole::kObs, "/image")),
        seed_(arrays_.Find(FieldRole::kObs, "/seed")),
        reward_(arrays_.Find(FieldRole::kReward, "")),
        episode_steps_(episode_steps),
        steps_(arrays_.num_envs, 0),
        ended_(arrays_.num_envs, 0) {}

  void Reset(uint32_t env, std::optional<uint64_t> seed) {
    steps_[env] = 0;
    ended_[env] = 0;
    if (image_ != nullptr) {
      std::ranges::fill(image_->Row(env), std::byte{0});
      seed_->Values<int64_t>()[env] = seed ? static_cast<int64_t>(*seed) : -1;
      return;
    }
    float* const row = &arrays_.obs[size_t{env} * arrays_.obs_size];
    for (uint32_t i = 0; i < arrays_.obs_size; ++i) {
      row[i] = static_cast<float>(env);
    }
    row[0] = 0;
    row[1] = seed ? static_cast<float>(*seed) : -1;
    row[2] = 0;
  }

  void ResetAll(std::optional<uint64_t> first_seed) {
    for (uint32_t env = 0; env < arrays_.num_envs; ++env) {
      Reset(env, first_seed ? std::optional(*first_seed + env) : std::nullopt);
      ClearFlags(env);
    }
  }

  void Exchange() {
    const bool steps = side_->kind() == ExchangeKind::kStep;
    if (steps && Misbehaves(Action(0, 0))) return;
    for (uint32_t env = 0; env < arrays_.num_envs; ++env) {
      const uint8_t flags = arrays_.resets[env];
      if (flags != 0 || (steps && ended_[env] != 0)) {
        Reset(env, (flags & kResetSeeded) != 0
                       ? std::optional(arrays_.reset_seeds[env])
                       : std::nullopt);
        ClearFlags(env);
      } else if (steps) {
        Step(env);
      }
    }
    side_->Publish();
  }

 private:
  void ClearFlags(uint32_t env) {
    arrays_.rewards[env] = 0;
    arrays_.dones[env] = 0;
    arrays_.truncateds[env] = 0;
    arrays_.terminateds[env] = 0;
    if (reward_ != nullptr) reward_->Values<double>()[env] = 0;
  }

  float Action(uint32_t env, uint32_t i) const {
    return image_ != nullptr
               ? static_cast<float>(action_->Values<int64_t>()[env])
               : arrays_.actions[size_t{env} * arrays_.act_size + i];
  }

  // Writes observation and reward.
  void Observe(uint32_t env) {
    if (image_ != nullptr) {
      std::ranges::fill(image_->Row(env),
                        static_cast<std::byte>(steps_[env] & 0xFF));
      reward_->Values<double>()[env] = 0.1 * Action(env, 0);
      arrays_.rewards[env] = 0.1F * Action(env, 0);
      return;
    }
    float sum = 0;
    for (uint32_t i = 0; i < arrays_.act_size; ++i) sum += Action(env, i);
    arrays_.rewards[env] = sum;
    float* const row = &arrays_.obs[size_t{env} * arrays_.obs_size];
    row[0] = static_cast<float>(steps_[env]);
    row[2] = Action(env, 0);
  }

  void KeepFinal(uint32_t env) {
    if (image_ != nullptr) {
      for (const FieldArray* field : {image_, seed_}) {
        std::ranges::copy(
            field->Row(env),
            arrays_.Find(FieldRole::kFinalObs, field->path)->Row(env).begin());
      }
      return;
    }
    for (uint32_t i = 0; i < arrays_.obs_size; ++i) {
      const size_t at = size_t{env} * arrays_.obs_size + i;
      arrays_.final_obs[at] = arrays_.obs[at];
    }
  }

  void Step(uint32_t env) {
    ++steps_[env];
    Observe(env);
    arrays_.terminateds[env] = Action(env, 0) >= 100;
    arrays_.truncateds[env] = steps_[env] >= episode_steps_;
    arrays_.dones[env] = arrays_.terminateds[env] | arrays_.truncateds[env];
    if (arrays_.dones[env] == 0) return;
    if (side_->autoreset_mode() == AutoresetMode::kNextStep) {
      ended_[env] = 1;
    } else if (side_->autoreset_mode() == AutoresetMode::kSameStep) {
      KeepFinal(env);
      Reset(env, std::nullopt);
    }
  }

  bool Misbehaves(float wish) {
    if (wish == -1001) {
      side_->Fail(ErrorCode::kEngineFailed, "told to fail");
      return true;
    }
    if (wish == -1003) {
      // relaxed: as in Stop.
      while (!stopping.load(std::memory_order_relaxed)) usleep(1000);
      return true;
    }
    if (wish == -1004) {
      for (int i = 0; i < 100; ++i) std::fprintf(stderr, "line %d\n", i);
    }
    if (wish == -1002 || wish == -1004) _exit(7);
    return false;
  }

  EngineSide* side_;
  StepArrays arrays_;
  // With --fields; otherwise nullptr.
  const FieldArray* action_;
  const FieldArray* image_;
  const FieldArray* seed_;
  const FieldArray* reward_;
  uint32_t episode_steps_;
  std::vector<uint32_t> steps_;
  std::vector<uint8_t> ended_;
};

RegionSpec Spec(const std::string& task) {
  RegionSpec spec = {.num_envs = absl::GetFlag(FLAGS_num_envs),
                     .obs_size = absl::GetFlag(FLAGS_obs_size),
                     .act_size = absl::GetFlag(FLAGS_act_size),
                     .task = task};
  if (!absl::GetFlag(FLAGS_fields)) return spec;
  spec.obs_size = 0;
  spec.act_size = 0;
  spec.fields = {
      {.role = FieldRole::kObs,
       .type = FieldType::kUint8,
       .shape = {2, 3},
       .path = "/image"},
      {.role = FieldRole::kObs, .type = FieldType::kInt64, .path = "/seed"},
      {.role = FieldRole::kAction, .type = FieldType::kInt64},
      {.role = FieldRole::kReward, .type = FieldType::kFloat64}};
  return spec;
}

int Refuse(const std::string& why) {
  std::fprintf(stderr, "trivial_engine: %s\n", why.c_str());
  return 2;
}

int Main() {
  const std::string task = absl::GetFlag(FLAGS_task);
  if (task != "Trivial-v0" && task != "HalfCheetah-v5") {
    return Refuse("expected a known task, found " + task);
  }
  const std::string model = absl::GetFlag(FLAGS_model);
  if (!model.empty() && access(model.c_str(), R_OK) != 0) {
    return Refuse("expected a model file, found no " + model);
  }
  absl::StatusOr<EngineSide> side =
      EngineSide::Create(absl::GetFlag(FLAGS_name), Spec(task), {});
  if (!side.ok()) return Refuse(std::string(side.status().message()));
  running = &*side;
  signal(SIGTERM, [](int) { Stop(); });
  if (const int fd = absl::GetFlag(FLAGS_launcher_fd); fd >= 0) {
    std::thread([fd] {
      char byte;
      while (read(fd, &byte, 1) > 0) {
      }
      Stop();
    }).detach();
  }
  TrivialEngine engine(&*side, absl::GetFlag(FLAGS_episode_steps));
  engine.ResetAll(absl::GetFlag(FLAGS_seed));
  if (const absl::Status open = side->Open(); !open.ok()) {
    return Refuse(std::string(open.message()));
  }
  bool fresh = true;
  for (;;) {
    switch (side->Next(Deadline::Infinite())) {
      case EngineEvent::kExchange:
        fresh = false;
        engine.Exchange();
        break;
      case EngineEvent::kClientArrived:
        if (!fresh) engine.ResetAll(std::nullopt);
        side->AcknowledgeAttach(absl::OkStatus());
        break;
      case EngineEvent::kClientLeft:
        engine.ResetAll(std::nullopt);
        break;
      case EngineEvent::kStopRequested:
        return 0;
      default:
        break;
    }
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
