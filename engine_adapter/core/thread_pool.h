// ThreadPool: spreads the environments of a step over threads. SuitableThreads:
// their number.
//
// Data flow: caller publishes a job -> threads claim runs of its indices, the
// caller among them -> the caller returns once every index was done.
// Ownership: an engine's; one thread at a time calls ParallelFor.
//
//   ThreadPool pool(SuitableThreads(num_envs));
//   auto step = [&](uint32_t i) { StepEnvironment(envs[i]); };
//   pool.ParallelFor(envs.size(), step);

#ifndef TANDEM_ENGINE_ADAPTER_CORE_THREAD_POOL_H_
#define TANDEM_ENGINE_ADAPTER_CORE_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "transport/wait/spin_budget.h"

namespace tandem {

// A worker that the system has not scheduled yet is not waited for: only claims
// in progress are. Idle workers spin as long as that has paid lately, then
// sleep.
//
//  word        writer        readers        publishes             initially
//  claim_      caller, all   all            job_ and its inputs   0
//  left_       caller, all   caller         the indices' results  0
//  published_  caller        workers        claim_, stopping_     0
//  stopping_   caller        workers        that all end          false
//
// claim_ holds the job's number (upper half; wraps, which would matter only to
// a worker that slept through 2^32 jobs between two instructions) and how many
// indices are unclaimed (lower half). A claim that succeeds proves that job_
// was read completely: the caller rewrites it only when nothing is unclaimed or
// undone, and no thread can claim from nothing.
class ThreadPool {
 public:
  // `threads` counts the caller; 1 or less: no other thread is made. Throws
  // std::system_error where the system has no more threads to give.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // How many indices a claim takes: half of a thread's share of what is left.
  // Long runs first, single indices at the end, where unequal steps have to be
  // evened out ("guided self-scheduling", Polychronopoulos and Kuck 1987).
  static constexpr uint32_t ClaimSize(uint32_t unclaimed, int threads) {
    return std::max(1U, unclaimed / (2 * static_cast<uint32_t>(threads)));
  }

  // Calls `fn(i)` once for each i below `count`, in any order, from several
  // threads at once; returns when all calls have returned. `fn` must not throw.
  // Does not allocate; a system call if workers sleep, others if it sleeps.
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

  // The job: written by the caller between jobs, read by all.
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

// The least of: the cores that this process may run on, the CPU limit of its
// cgroup (version 2), `num_envs`; at least 1. Reads files.
int SuitableThreads(uint32_t num_envs);

// The CPU limit of a version 2 cgroup in whole cores, rounded up: the tightest
// of it and the groups above it. 0: none. `mount` is where the hierarchy is
// mounted, `group` the path in it.
int CgroupCores(const std::string& mount, const std::string& group);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_THREAD_POOL_H_
