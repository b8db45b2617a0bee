#include "program/grpc/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdlib>

namespace tandem {
namespace {

// The event's data for a wake-up; other values are watches.
constexpr uint64_t kWake = 0;

// Aborts if the process lacks descriptors or memory for its own loops.
UniqueFd OrAbort(int fd, const char* what) {
  if (fd < 0) {
    std::perror(what);
    std::abort();
  }
  return UniqueFd(fd);
}

}  // namespace

EventLoop::EventLoop(const std::string& name, std::function<int64_t()> now_ns)
    : now_ns_(std::move(now_ns)),
      epoll_(OrAbort(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(OrAbort(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWake}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Post(Task task) {
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) return;  // the first post has woken the loop
  }
  eventfd_write(wake_.get(), 1);
}

EventLoop::TimerId EventLoop::After(absl::Duration delay, Task task) {
  const TimerId timer = {now_ns_() + absl::ToInt64Nanoseconds(delay),
                         ++last_timer_};
  timers_.emplace(timer, std::move(task));
  return timer;
}

void EventLoop::Cancel(TimerId timer) { timers_.erase(timer); }

void EventLoop::Watch(int fd, Task ready) {
  Add(fd, EPOLLIN, std::move(ready));
}

// EPOLLHUP is always reported.
void EventLoop::WatchEnd(int fd, Task ended) {
  Add(fd, EPOLLRDHUP, std::move(ended));
}

void EventLoop::Add(int fd, uint32_t events, Task task) {
  const uint64_t watch = ++last_watch_;
  watches_[fd] = watch;
  watched_.emplace(watch, std::move(task));
  epoll_event event = {.events = events, .data = {.u64 = watch}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    OrAbort(-1, "epoll_ctl");
  }
}

void EventLoop::Unwatch(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(found->second);
  watches_.erase(found);
}

void EventLoop::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  std::vector<Task> dropped;
  MutexLock lock(&mutex_);
  dropped.swap(posted_);
}

int EventLoop::RunTimers() {
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    const int64_t wait_ns = first->first.first - now_ns_();
    // Rounded up: a wait of 0 ms would spin until the timer is due.
    if (wait_ns > 0) {
      return static_cast<int>(std::min<int64_t>(wait_ns / 1'000'000 + 1, 1000));
    }
    Task task = std::move(first->second);
    timers_.erase(first);
    task();
  }
  return 1000;
}

void EventLoop::RunPosted() {
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
  std::vector<Task> tasks;
  {
    MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (Task& task : tasks) task();
}

void EventLoop::Run() {
  epoll_event events[16];
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (stopped_) return;
    }
    const int count = epoll_wait(epoll_.get(), events, 16, RunTimers());
    for (int i = 0; i < count; ++i) {
      const uint64_t watch = events[i].data.u64;
      if (watch == kWake) {
        RunPosted();
      } else if (const auto found = watched_.find(watch);
                 found != watched_.end()) {
        // Moved out during its call: it may unwatch itself.
        Task ready = std::move(found->second);
        ready();
        const auto still = watched_.find(watch);
        if (still != watched_.end()) still->second = std::move(ready);
      }
    }
  }
}

}  // namespace tandem
