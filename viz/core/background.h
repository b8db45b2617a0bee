// Work that blocks, for a front end whose thread must not wait. SlowRead: the
// newest result of a repeated read. StartAction, Pending: an action and its
// result, when it is there.
//
// Data flow: Newest -> a WorkThread reads at most once a second, while results
// are asked for -> the next Newest returns it.
// Ownership: a front end; work in progress shares these objects.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/work_queue.h"

namespace tandem {

// Runs calls that block, one after another. Its end drops those that wait, and
// blocks until the current one ends.
class WorkThread {
 public:
  static constexpr size_t kMostWaiting = 64;

  // As WorkQueue's.
  [[nodiscard]] bool Add(std::function<void()> work) {
    return queue_.Add(std::move(work));
  }

 private:
  WorkQueue queue_{1, kMostWaiting, WorkQueue::AtEnd::kDropWaiting};
};

// A text for the user, such as the path of a recording, or the reason of a
// failure. Any thread.
class Pending {
 public:
  void Set(absl::StatusOr<std::string> result) {
    MutexLock lock(&mutex_);
    result_ = std::move(result);
  }
  std::optional<absl::StatusOr<std::string>> Get() const {
    MutexLock lock(&mutex_);
    return result_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<absl::StatusOr<std::string>> result_ ABSL_GUARDED_BY(mutex_);
};

// Performs an action on `thread`. `done` gets its status there, before the
// Pending has the result. kNotReady: too many wait already.
inline std::shared_ptr<Pending> StartAction(
    WorkThread* thread, std::function<absl::StatusOr<std::string>()> perform,
    std::function<void(const absl::Status& status)> done) {
  auto pending = std::make_shared<Pending>();
  const bool posted = thread->Add(
      [pending, perform = std::move(perform), done = std::move(done)] {
        absl::StatusOr<std::string> result = perform();
        if (done) done(result.status());
        pending->Set(std::move(result));
      });
  if (!posted) {
    pending->Set(
        MakeError(ErrorCode::kNotReady,
                  absl::StrCat("expected fewer actions at once, found that ",
                               WorkThread::kMostWaiting, " wait; try again")));
  }
  return pending;
}

template <typename Result>
class SlowRead : public std::enable_shared_from_this<SlowRead<Result>> {
 public:
  static constexpr int64_t kPeriodNs = 1'000'000'000;

  // Returns the newest result whose reading began at `not_before_ns` or later;
  // nullptr: none yet. Has `thread` read again if the newest is older than
  // that, or than kPeriodNs. Does not wait. One thread calls it.
  std::shared_ptr<const Result> Newest(WorkThread* thread, int64_t now_ns,
                                       int64_t not_before_ns,
                                       std::function<Result()> read) {
    wanted_ns_ = now_ns;
    MutexLock lock(&mutex_);
    if (!reading_ &&
        (!requested_ns_.has_value() || *requested_ns_ < not_before_ns ||
         now_ns - *requested_ns_ >= kPeriodNs)) {
      requested_ns_ = now_ns;
      reading_ = thread->Add(
          [self = this->shared_from_this(), now_ns, read = std::move(read)] {
            auto result = std::make_shared<const Result>(read());
            MutexLock inner(&self->mutex_);
            self->result_ = std::move(result);
            self->result_ns_ = now_ns;
            self->reading_ = false;
          });
    }
    return result_ns_ >= not_before_ns ? result_ : nullptr;
  }

  // When Newest was last called.
  int64_t wanted_ns() const { return wanted_ns_; }

 private:
  int64_t wanted_ns_ = 0;
  std::optional<int64_t> requested_ns_;
  Mutex mutex_;
  std::shared_ptr<const Result> result_ ABSL_GUARDED_BY(mutex_);
  int64_t result_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // the begin of its reading
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem
