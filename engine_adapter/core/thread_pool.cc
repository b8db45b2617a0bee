#include "engine_adapter/core/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/blocked_signals.h"
#include "base/os/machine.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

constexpr int kSpinsPerClockRead = 16;

// About the latency of a wake. With more threads than cores, a spinning thread
// delays the threads for which it waits; so no spin is longer.
constexpr int64_t kLongestSpinNs = 50'000;

// Spins while `budget` allows. Returns whether `ready` became true.
template <typename Ready>
bool Spin(SpinBudget& budget, Ready ready) {
  const int64_t spin_ns = budget.ForThisWait();
  if (spin_ns == 0) return ready();
  const int64_t start = MonotonicNanos();
  for (int64_t waited = 0; waited < spin_ns;
       waited = MonotonicNanos() - start) {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (ready()) {
        budget.Hit(waited);
        return true;
      }
      Relax();
    }
  }
  budget.Miss();
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(threads, 1)),
      caller_budget_(kLongestSpinNs, /*most_credit_ns=*/0) {
  const BlockedSignals blocked;
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {
    const size_t made = workers_.size() + 1;
    Stop();
    throw std::system_error(
        error.code(),
        absl::StrCat("expected room for ", threads, " threads, found it for ",
                     made, "; use fewer, or raise `ulimit -u`"));
  }
}

void ThreadPool::Stop() {
  // relaxed: published_ publishes it.
  stopping_.store(true, std::memory_order_relaxed);
  // SYNC(pool.published): release; stopping_ before the number. seq_cst as in
  // Run: Stop would wait forever for a worker that missed this.
  published_.fetch_add(1, std::memory_order_seq_cst);
  published_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(uint32_t count, Call call, void* context) {
  if (workers_.empty() || count <= 1) {
    for (uint32_t i = 0; i < count; ++i) call(context, i);
    return;
  }
  // relaxed: no other thread writes published_, and claim_ publishes the job.
  const uint32_t job = published_.load(std::memory_order_relaxed) + 1;
  job_.call.store(call, std::memory_order_relaxed);
  job_.context.store(context, std::memory_order_relaxed);
  left_.store(count, std::memory_order_relaxed);
  // SYNC(pool.claim): release; the job and its inputs before the claims.
  claim_.store(uint64_t{job} << 32 | count, std::memory_order_release);
  // SYNC(pool.published): release; claim_ before the number. seq_cst, since
  // notify_all then checks whether a thread waits. If the two were reordered, a
  // worker could fall asleep between check and store, and miss this job.
  published_.store(job, std::memory_order_seq_cst);
  published_.notify_all();

  while (ClaimAndCall(job)) {
  }
  const auto all_done = [&] {
    // SYNC(pool.left): acquire; the count, then the results.
    return left_.load(std::memory_order_acquire) == 0;
  };
  if (Spin(caller_budget_, all_done)) return;
  for (;;) {
    // SYNC(pool.left): acquire; the count, then the results.
    const uint32_t left = left_.load(std::memory_order_acquire);
    if (left == 0) return;
    // SYNC(pool.left): acquire; the count, then the results.
    left_.wait(left, std::memory_order_acquire);
  }
}

// Claims some indices of job number `job`, and does them. Returns false if no
// index is unclaimed or the job has ended.
bool ThreadPool::ClaimAndCall(uint32_t job) {
  // SYNC(pool.claim): acquire; the job's number, then the job.
  uint64_t claim = claim_.load(std::memory_order_acquire);
  for (;;) {
    const auto unclaimed = static_cast<uint32_t>(claim);
    if (claim >> 32 != job || unclaimed == 0) return false;
    // relaxed: the claim below proves that these belong together.
    const Call call = job_.call.load(std::memory_order_relaxed);
    void* const context = job_.context.load(std::memory_order_relaxed);
    const uint32_t size = ClaimSize(unclaimed, threads_);
    const uint32_t begin = unclaimed - size;
    // SYNC(pool.claim): acquire; on failure too: another thread's claim and the
    // job.
    if (!claim_.compare_exchange_weak(claim, uint64_t{job} << 32 | begin,
                                      std::memory_order_acquire,
                                      std::memory_order_acquire)) {
      continue;
    }
    for (uint32_t i = begin; i < unclaimed; ++i) call(context, i);
    // SYNC(pool.left): release; the results before the count. seq_cst, since
    // notify_one then checks whether the caller waits. If the two were
    // reordered, the caller could fall asleep between check and count, forever.
    if (left_.fetch_sub(size, std::memory_order_seq_cst) == size) {
      left_.notify_one();
    }
    return true;
  }
}

void ThreadPool::Work() {
  SpinBudget budget(kLongestSpinNs, /*most_credit_ns=*/0);
  uint32_t seen = 0;
  for (;;) {
    const auto is_new = [&] {
      // SYNC(pool.published): acquire; the number, then claim_ and stopping_.
      return published_.load(std::memory_order_acquire) != seen;
    };
    if (!Spin(budget, is_new)) {
      // SYNC(pool.published): acquire; the number, then claim_ and stopping_.
      published_.wait(seen, std::memory_order_acquire);
    }
    // SYNC(pool.published): acquire; the number, then claim_ and stopping_.
    seen = published_.load(std::memory_order_acquire);
    // relaxed: published_ published it.
    if (stopping_.load(std::memory_order_relaxed)) return;
    while (ClaimAndCall(seen)) {
    }
  }
}

int SuitableThreads(uint32_t num_envs) {
  return static_cast<int>(std::clamp<int64_t>(num_envs, 1, UsableCores()));
}

}  // namespace tandem
