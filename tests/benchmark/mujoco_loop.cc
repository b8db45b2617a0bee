// The physical limit of the MuJoCo rows: mj_step in a bare loop on some
// threads, in one process, without any transport.
//
//   mujoco_loop --task=Ant-v5 --envs=64 --threads=2 --actions=FILE
//
// FILE holds batches of actions, float32[batches, envs, nu], used in turn. Each
// line of standard input is a number of seconds to step for; the answer is a
// line of JSON: besides times, what a test holds against Tandem's environments.
// The states live on from one line to the next.
//
// What a step of an environment is: its action into ctrl, frame_skip times
// mj_step, the values of an observation out as float32. mj_rnePostConstraint
// too where contact forces are observed. No rewards, no infos, no checks. What
// has fallen or reached its time limit is reset by its next step, which then
// simulates nothing, as Gymnasium's NEXT_STEP has it: Humanoid falls within
// some 20 steps of random actions, and lying down is another physics. Each
// thread has a block of the environments, always the same; all spin on a
// barrier after each batch.
#include <mujoco/mujoco.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "tests/benchmark/or_exit.h"
#include "transport/base/clock.h"
#include "transport/wait/relax.h"

ABSL_FLAG(std::string, task, "HalfCheetah-v5",
          "HalfCheetah-v5, Ant-v5 or Humanoid-v5");
ABSL_FLAG(uint32_t, envs, 1, "environments");
ABSL_FLAG(uint32_t, threads, 1, "threads that step them, this one included");
ABSL_FLAG(std::string, actions, "", "file of actions");
ABSL_FLAG(std::string, assets, "",
          "folder of the models; empty: that of this program's runfiles");
ABSL_FLAG(bool, reset_noise, true,
          "whether episodes begin apart from one another, as Gymnasium's");

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxEpisodeSteps = 1000;

enum class Observed : uint8_t {
  kPositions,      // and velocities
  kContactForces,  // too
  kInertias,       // and those of bodies, and of actuators, too
};

struct LoopTask {
  const char* name;
  const char* file;
  int frame_skip;
  int hidden_positions;
  Observed observed;
  double reset_noise;
  double lowest = -kInfinity;  // height outside of which an episode ends
  double highest = kInfinity;
  double contact_bound = kInfinity;  // magnitude of a force observed, at most
};

// As Gymnasium's defaults.
constexpr std::array<LoopTask, 3> kTasks = {{
    {"HalfCheetah-v5", "half_cheetah.xml", 5, 1, Observed::kPositions, 0.1},
    {"Ant-v5", "ant.xml", 5, 2, Observed::kContactForces, 0.1, 0.2, 1.0, 1.0},
    {"Humanoid-v5", "humanoid.xml", 5, 2, Observed::kInertias, 0.01, 1.0, 2.0},
}};

struct Env {
  DataPtr data;
  std::mt19937 random;
  int steps = 0;
  bool ended = false;
  uint64_t episodes = 0;  // that have ended
};

class Loop {
 public:
  Loop(const LoopTask& task, uint32_t envs, uint32_t threads,
       const std::string& actions);

  // Steps batches for so long.
  void Run(double seconds);

  uint64_t steps() const { return batches_done_ * envs_.size(); }
  size_t obs_size() const { return obs_size_; }
  uint64_t episodes() const;  // that have ended
  double obs_sum() const {    // of the last batch's, all values
    return std::accumulate(obs_.begin(), obs_.end(), 0.0);
  }

 private:
  void Work(uint32_t thread);
  void StepBlock(uint32_t thread, uint64_t batch);
  void Step(Env& env, const float* action, float* obs) const;
  void Reset(Env& env) const;
  void Observe(const mjData& data, float* obs) const;

  const LoopTask task_;
  ModelPtr model_;
  uint32_t threads_;
  std::vector<Env> envs_;
  std::vector<float> actions_;
  size_t batch_size_;
  uint64_t batches_;
  size_t obs_size_;
  std::vector<float> obs_;
  uint64_t batches_done_ = 0;  // of all runs
  //  word      writer   readers  publishes                   initially
  //  begun_    main     workers  how many batches may begin  0
  //  arrived_  workers  main     their blocks of a batch     0
  //  stop_     main     workers  that no batch follows       false
  alignas(128) std::atomic<uint64_t> begun_{0};
  std::atomic<bool> stop_{false};
  alignas(128) std::atomic<uint32_t> arrived_{0};
};

std::vector<float> FloatsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  Require(file.good(),
          absl::StrCat("--actions: expected a file to read, found none at ",
                       path, ". Next: see tests/benchmark/mujoco_rows.py"));
  std::vector<float> floats(static_cast<size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  const auto bytes =
      static_cast<std::streamsize>(floats.size() * sizeof(float));
  file.read(reinterpret_cast<char*>(floats.data()), bytes);
  Require(file.gcount() == bytes,
          absl::StrCat("--actions: expected ", bytes, " bytes of ", path,
                       ", found ", file.gcount(),
                       ". Next: see who writes it meanwhile"));
  return floats;
}

Loop::Loop(const LoopTask& task, uint32_t envs, uint32_t threads,
           const std::string& actions)
    : task_(task),
      model_(Got(LoadModel(
          Got(FindModelFile(task.file, absl::GetFlag(FLAGS_assets)))))),
      threads_(threads),
      envs_(envs),
      actions_(FloatsOf(actions)),
      batch_size_(size_t{envs} * static_cast<size_t>(model_->nu)),
      batches_(actions_.size() / batch_size_) {
  Require(batches_ > 0 && actions_.size() % batch_size_ == 0,
          absl::StrCat("--actions: expected batches of ", batch_size_,
                       " floats, found ", actions_.size(),
                       ". Next: write them for this task and --envs"));
  const auto bodies = static_cast<size_t>(model_->nbody) - 1;
  obs_size_ = static_cast<size_t>(model_->nq - task.hidden_positions +  //
                                  model_->nv);
  if (task.observed >= Observed::kContactForces) obs_size_ += bodies * 6;
  if (task.observed == Observed::kInertias) {
    obs_size_ += bodies * 16 + static_cast<size_t>(model_->nv) - 6;
  }
  obs_.resize(envs * obs_size_);
  for (uint32_t i = 0; i < envs; ++i) {
    envs_[i].data = Got(MakeData(*model_));
    envs_[i].random.seed(i);
    Reset(envs_[i]);
  }
}

uint64_t Loop::episodes() const {
  uint64_t episodes = 0;
  for (const Env& env : envs_) episodes += env.episodes;
  return episodes;
}

void Loop::Run(double seconds) {
  // relaxed: the threads' start publishes it.
  stop_.store(false, std::memory_order_relaxed);
  std::vector<std::thread> workers;
  for (uint32_t i = 1; i < threads_; ++i) {
    workers.emplace_back([this, i] { Work(i); });
  }
  const Deadline deadline = Deadline::After(seconds);
  do {
    // relaxed: the workers have all arrived, and wait for begun_.
    arrived_.store(0, std::memory_order_relaxed);
    // SYNC(loop.begun): release; the batch before, and arrived_.
    begun_.store(batches_done_ + 1, std::memory_order_release);
    StepBlock(0, batches_done_);
    // SYNC(loop.arrived): acquire; the workers' blocks.
    while (arrived_.load(std::memory_order_acquire) + 1 != threads_) Relax();
    ++batches_done_;
  } while (!deadline.PassedAt(MonotonicNanos()));
  // SYNC(loop.stop): release; nothing but itself.
  stop_.store(true, std::memory_order_release);
  for (std::thread& worker : workers) worker.join();
}

void Loop::Work(uint32_t thread) {
  for (uint64_t batch = batches_done_;; ++batch) {
    // SYNC(loop.begun): acquire; all blocks of the batch before.
    while (begun_.load(std::memory_order_acquire) != batch + 1) {
      // SYNC(loop.stop): acquire; nothing but itself.
      if (stop_.load(std::memory_order_acquire)) return;
      Relax();
    }
    StepBlock(thread, batch);
    // SYNC(loop.arrived): release; this block.
    arrived_.fetch_add(1, std::memory_order_release);
  }
}

void Loop::StepBlock(uint32_t thread, uint64_t batch) {
  const size_t begin = envs_.size() * thread / threads_;
  const size_t end = envs_.size() * (thread + 1) / threads_;
  const auto act_size = static_cast<size_t>(model_->nu);
  const float* const actions = &actions_[batch % batches_ * batch_size_];
  for (size_t i = begin; i < end; ++i) {
    Step(envs_[i], actions + i * act_size, &obs_[i * obs_size_]);
  }
}

void Loop::Step(Env& env, const float* action, float* obs) const {
  mjData* const data = env.data.get();
  if (env.ended) {
    Reset(env);
  } else {
    std::copy_n(action, model_->nu, data->ctrl);
    for (int i = 0; i < task_.frame_skip; ++i) mj_step(model_.get(), data);
    if (task_.observed >= Observed::kContactForces) {
      mj_rnePostConstraint(model_.get(), data);
    }
    const double height = data->qpos[task_.hidden_positions];
    env.ended = ++env.steps == kMaxEpisodeSteps || height < task_.lowest ||
                height > task_.highest;
    if (env.ended) ++env.episodes;
  }
  Observe(*data, obs);
}

void Loop::Reset(Env& env) const {
  mjData* const data = env.data.get();
  mj_resetData(model_.get(), data);
  std::uniform_real_distribution<double> noise(-task_.reset_noise,
                                               task_.reset_noise);
  for (double& position : std::span(data->qpos, model_->nq)) {
    position += noise(env.random);
  }
  for (double& velocity : std::span(data->qvel, model_->nv)) {
    velocity = noise(env.random);
  }
  mj_forward(model_.get(), data);
  env.steps = 0;
  env.ended = false;
}

void Loop::Observe(const mjData& data, float* obs) const {
  const auto put = [&obs](const mjtNum* values, int first, int count) {
    for (int i = first; i < count; ++i) *obs++ = static_cast<float>(values[i]);
  };
  const int bodies = static_cast<int>(model_->nbody);
  const int velocities = static_cast<int>(model_->nv);
  put(data.qpos, task_.hidden_positions, static_cast<int>(model_->nq));
  put(data.qvel, 0, velocities);
  if (task_.observed == Observed::kInertias) {
    put(data.cinert, 10, bodies * 10);
    put(data.cvel, 6, bodies * 6);
    put(data.qfrc_actuator, 6, velocities);
  }
  if (task_.observed >= Observed::kContactForces) {
    for (int i = 6; i < bodies * 6; ++i) {
      *obs++ = static_cast<float>(std::clamp(
          data.cfrc_ext[i], -task_.contact_bound, task_.contact_bound));
    }
  }
}

int Main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Steps MuJoCo environments in a bare loop, for as many seconds as each "
      "line of standard input says.");
  absl::ParseCommandLine(argc, argv);
  InstallMujocoLog(nullptr);
  const std::string name = absl::GetFlag(FLAGS_task);
  const auto* const task = std::ranges::find(kTasks, name, &LoopTask::name);
  Require(task != kTasks.end(),
          absl::StrCat("--task: expected HalfCheetah-v5, Ant-v5 or "
                       "Humanoid-v5, found ",
                       name, ". Next: one of these"));
  const uint32_t envs = absl::GetFlag(FLAGS_envs);
  const uint32_t threads = absl::GetFlag(FLAGS_threads);
  Require(envs > 0 && threads > 0,
          absl::StrCat("expected --envs and --threads of at least 1, found ",
                       envs, " and ", threads, ". Next: see --help"));
  LoopTask chosen = *task;
  if (!absl::GetFlag(FLAGS_reset_noise)) chosen.reset_noise = 0;
  Loop loop(chosen, envs, threads, absl::GetFlag(FLAGS_actions));
  for (std::string line; std::getline(std::cin, line);) {
    double seconds = 0;
    Require(absl::SimpleAtod(line, &seconds),
            absl::StrCat("expected a line with seconds, such as 0.5, found ",
                         line, ". Next: see the top of mujoco_loop.cc"));
    const uint64_t steps_before = loop.steps();
    const int64_t began = MonotonicNanos();
    loop.Run(seconds);
    const double secs = static_cast<double>(MonotonicNanos() - began) / 1e9;
    absl::PrintF(
        R"({"steps": %d, "secs": %.9f, "obs_size": %d, "episodes": %d, )"
        R"("obs_sum": %.17g})"
        "\n",
        loop.steps() - steps_before, secs, loop.obs_size(), loop.episodes(),
        loop.obs_sum());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
