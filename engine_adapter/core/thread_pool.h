// ThreadPool: distributes the environments of a step over threads.
// SuitableThreads: the number of threads to use.
//
// Data flow: the caller publishes a job -> threads, and the caller too, claim
// ranges of its indices -> the caller returns after every index is done.
// Ownership: an engine owns it; one thread at a time calls ParallelFor.
//
//   ThreadPool pool(SuitableThreads(num_envs));
//   auto step = [&](uint32_t i) { StepEnvironment(envs[i]); };
//   pool.ParallelFor(envs.size(), step);

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "transport/wait/spin_budget.h"

namespace tandem {

// The caller waits only for claims in progress, never for a worker that the
// kernel has not scheduled yet. An idle worker spins while recent spins
// succeeded; then it sleeps.
//
//  word        writer        readers        publishes             initially
//  claim_      caller, all   all            job_ and its inputs   0
//  left_       caller, all   caller         the indices' results  0
//  published_  caller        workers        claim_, stopping_     0
//  stopping_   caller        workers        that all end          false
//
// claim_ holds the job's number (upper half) and the number of unclaimed
// indices (lower half). The job's number wraps; this matters only to a worker
// that slept through 2^32 jobs between two instructions. A claim that succeeds
// proves that the thread read job_ completely: the caller changes job_ only
// while no index is unclaimed or in progress, and then no claim can succeed.
class ThreadPool {
 public:
  // `threads` includes the caller; with 1 or less no other thread is made.
  // Throws std::system_error if the kernel refuses a thread.
  explicit ThreadPool(int threads);
  ~ThreadPool() { Stop(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // The number of indices that one claim takes: half of a thread's share of the
  // unclaimed ones. First claims are long; last claims are single indices,
  // which balance unequal steps ("guided self-scheduling", Polychronopoulos and
  // Kuck 1987).
  static constexpr uint32_t ClaimSize(uint32_t unclaimed, int threads) {
    return std::max(1U, unclaimed / (2 * static_cast<uint32_t>(threads)));
  }

  // Calls `fn(i)` once for each i below `count`, in any order, on several
  // threads. Blocks until all calls have returned. `fn` must not throw. Does
  // not allocate. Makes a system call if workers sleep, and others if the
  // caller sleeps.
  template <typename Fn>
  void ParallelFor(uint32_t count, Fn& fn) {
    Run(
        count,
        [](void* context, uint32_t i) { (*static_cast<Fn*>(context))(i); },
        &fn);
  }

 private:
  using Call = void (*)(void* context, uint32_t index);

  void Run(uint32_t count, Call call, void* context);
  void Stop();
  void Work();
  bool ClaimAndCall(uint32_t job);

  // The job. The caller writes it between jobs; all threads read it.
  struct Job {
    std::atomic<Call> call{nullptr};
    std::atomic<void*> context{nullptr};
  };

  const int threads_;
  alignas(128) Job job_;
  alignas(128) std::atomic<uint64_t> claim_{0};
  alignas(128) std::atomic<uint32_t> left_{0};
  alignas(128) std::atomic<uint32_t> published_{0};
  std::atomic<bool> stopping_{false};
  SpinBudget caller_budget_;
  std::vector<std::thread> workers_;
};

// Returns the lesser of UsableCores and `num_envs`, and at least 1. Reads
// files.
int SuitableThreads(uint32_t num_envs);

}  // namespace tandem
