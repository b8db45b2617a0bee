// Workers that count, and their supervisor, for tests of regions with workers.
//
// Data flow: actions -> CountingWorker -> obs = {steps since the environment's
// reset, its action, 1 + its worker's index}.
// Ownership: WorkerRig has a thread for each worker and one for the supervisor;
// a test of processes makes the parts itself.
//
//   WorkerRig rig(name, WorkerSpec(4, 2));
//   ClientSide client = AttachOrFail(name);
//   EXPECT_EQ(Step(client, {1, 2, 3, 4}), ErrorCode::kOk);

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/layout/lrbc.h"
#include "transport/client_side.h"
#include "transport/memory/region_plan.h"
#include "transport/session/supervisor_side.h"
#include "transport/step_arrays.h"
#include "transport/worker_side.h"

namespace tandem {

inline RegionSpec WorkerSpec(uint32_t envs, uint32_t workers) {
  RegionSpec spec = {.num_envs = envs,
                     .obs_size = 3,
                     .act_size = 1,
                     .ring_bytes = 4096,
                     .task = "counting"};
  spec.workers = workers;
  spec.subsets = true;
  return spec;
}

// An action that makes the environment raise an exception.
inline constexpr float kRaise = -1000;
// An action at which the worker leaves its slot at once, as if it died.
inline constexpr float kDie = -2000;

class CountingWorker {
 public:
  explicit CountingWorker(WorkerSide side)
      : side_(std::move(side)), counts_(side_.num_envs(), 0) {}

  WorkerSide& side() { return side_; }
  const std::vector<std::optional<uint64_t>>& seeds() const { return seeds_; }

  // Handles the next event, and returns it. kSupervisorGone also after kDie.
  WorkerEvent ServeOnce(Deadline deadline) {
    const WorkerEvent event = side_.Next(deadline);
    switch (event) {
      case WorkerEvent::kExchange:
      case WorkerEvent::kLane:
        if (!Advance()) return WorkerEvent::kSupervisorGone;
        side_.Finish();
        break;
      case WorkerEvent::kReset:
        seeds_.push_back(side_.first_seed());
        for (uint32_t i = 0; i < side_.num_envs(); ++i) Reset(i);
        side_.Acknowledge();
        break;
      case WorkerEvent::kMessage:
      case WorkerEvent::kStop:
        side_.Acknowledge();
        break;
      case WorkerEvent::kSupervisorGone:
      case WorkerEvent::kTimedOut:
      case WorkerEvent::kInterrupted:
        break;
    }
    return event;
  }

  // Serves until the supervisor stops it, or is gone.
  void Serve() {
    for (;;) {
      const WorkerEvent event = ServeOnce(Deadline::Infinite());
      if (event == WorkerEvent::kStop) return;
      if (event == WorkerEvent::kSupervisorGone) return;
    }
  }

 private:
  void Reset(uint32_t i) {
    counts_[i] = 0;
    Observe(i, 0);
  }
  void Observe(uint32_t i, float action) {
    const StepArrays& arrays = side_.arrays();
    const size_t env = side_.first_env() + i;
    arrays.obs[3 * env] = counts_[i];
    arrays.obs[3 * env + 1] = action;
    arrays.obs[3 * env + 2] = static_cast<float>(1 + side_.worker());
  }
  // Returns whether it lives.
  bool Advance() {
    const StepArrays& arrays = side_.arrays();
    for (uint32_t i = 0; i < side_.num_envs(); ++i) {
      const uint32_t env = side_.first_env() + i;
      side_.ShowEnv(env);
      const uint8_t flags = arrays.resets[env];
      if (side_.restarted() || IsReset(flags)) {
        Reset(i);
      } else if (flags != kSkip && side_.kind() == ExchangeKind::kStep) {
        const float action = arrays.actions[env];
        if (action == kDie) return false;
        if (action == kRaise) {
          side_.Fail(env, absl::StrCat("Traceback\n  line\nValueError: env ",
                                       env, "\n"));
          continue;
        }
        counts_[i] += 1;
        Observe(i, action);
      }
    }
    side_.CountSteps(side_.num_envs());
    return true;
  }

  WorkerSide side_;
  std::vector<float> counts_;
  std::vector<std::optional<uint64_t>> seeds_;
};

// A supervisor and its workers, each on a thread of its own.
class WorkerRig {
 public:
  // After a worker's death: whether another takes its slot; else the region
  // ends.
  struct Options {
    bool restarts = false;
    std::optional<uint64_t> seed = {};
  };

  WorkerRig(const std::string& name, const RegionSpec& spec,
            const Options& options)
      : options_(options), side_(Create(name, spec)) {
    for (uint32_t worker = 0; worker < spec.workers; ++worker) Start(worker);
    side_->ResetWorkers(options_.seed);
    EXPECT_EQ(Await(), SupervisorEvent::kWorkersReady);
    EXPECT_TRUE(side_->Open().ok());
    supervisor_ = std::thread([this] { Supervise(); });
  }
  WorkerRig(const std::string& name, const RegionSpec& spec)
      : WorkerRig(name, spec, Options()) {}
  WorkerRig(const WorkerRig&) = delete;
  WorkerRig& operator=(const WorkerRig&) = delete;
  ~WorkerRig() {
    // relaxed: only the flag is used.
    stops_.store(true, std::memory_order_relaxed);
    if (supervisor_.joinable()) supervisor_.join();
    side_.reset();  // the workers see that the supervisor is gone
    for (std::thread& worker : workers_) worker.join();
  }

  // Runs `call` on the supervisor's thread, between two events, and waits.
  void OnSupervisor(std::function<void(SupervisorSide&)> call) {
    std::packaged_task<void(SupervisorSide&)> task(std::move(call));
    std::future<void> done = task.get_future();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    done.get();
  }

  int arrivals() const { return arrivals_; }
  int departures() const { return departures_; }
  int broken() const { return broken_; }
  int deaths() const { return deaths_; }
  int answers() const { return answers_; }

 private:
  static std::unique_ptr<SupervisorSide> Create(const std::string& name,
                                                const RegionSpec& spec) {
    absl::StatusOr<SupervisorSide> side =
        SupervisorSide::Create(name, spec, {});
    EXPECT_TRUE(side.ok()) << side.status();
    return std::make_unique<SupervisorSide>(*std::move(side));
  }

  void Start(uint32_t worker) {
    absl::StatusOr<WorkerSide> side =
        WorkerSide::Attach(side_->region().memory().handle(), worker, {});
    ASSERT_TRUE(side.ok()) << side.status();
    workers_.emplace_back(
        [mine = std::make_shared<CountingWorker>(*std::move(side))]() mutable {
          mine->Serve();
          mine.reset();  // leaves the slot
        });
  }

  SupervisorEvent Await() {
    SupervisorEvent event = SupervisorEvent::kTimedOut;
    while (event == SupervisorEvent::kTimedOut) {
      event = side_->Next(Deadline::After(0.01));
    }
    return event;
  }

  void Supervise() {
    // relaxed: only the flag is used.
    while (!stops_.load(std::memory_order_relaxed)) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto& task : std::exchange(tasks_, {})) task(*side_);
      }
      switch (side_->Next(Deadline::After(0.002))) {
        case SupervisorEvent::kClientArrived:
          ++arrivals_;
          side_->AcknowledgeAttach(absl::OkStatus());
          break;
        case SupervisorEvent::kClientLeft:
          ++departures_;
          break;
        case SupervisorEvent::kBrokenClient:
          ++broken_;
          break;
        case SupervisorEvent::kWorkersAnswered:
          ++answers_;
          break;
        case SupervisorEvent::kWorkerDied: {
          const uint32_t worker = side_->dead_worker();
          ++deaths_;
          if (!options_.restarts) {
            side_->End(ErrorCode::kEngineFailed,
                       absl::StrCat(side_->WorkerText(worker), ", died"));
            side_.reset();
            return;
          }
          EXPECT_TRUE(side_->ReplaceWorker(worker));
          Start(worker);
          break;
        }
        default:
          break;
      }
    }
  }

  const Options options_;
  std::unique_ptr<SupervisorSide> side_;
  std::vector<std::thread> workers_;
  std::thread supervisor_;
  std::mutex mutex_;
  std::vector<std::packaged_task<void(SupervisorSide&)>> tasks_;
  std::atomic<bool> stops_{false};
  std::atomic<int> arrivals_{0}, departures_{0}, broken_{0}, deaths_{0},
      answers_{0};
};

// Checks that each environment has stepped `count` times since its reset, the
// last time with `action`.
inline void ExpectRows(const ClientSide& client, float count, float action) {
  const StepArrays& arrays = client.arrays();
  for (uint32_t env = 0; env < arrays.num_envs; ++env) {
    EXPECT_EQ(arrays.obs[3 * env], count) << env;
    EXPECT_EQ(arrays.obs[3 * env + 1], action) << env;
  }
}

inline ErrorCode StepAll(ClientSide& client, float action) {
  return client.Step(std::vector<float>(client.arrays().num_envs, action), 20);
}

inline std::string Explained(const ClientSide& client, ErrorCode code) {
  return std::string(client.Explain(code).message());
}

}  // namespace tandem
