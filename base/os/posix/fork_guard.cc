#include "base/os/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "base/os/posix/guarded_descriptors.h"
#include "base/os/posix/open_above_standard_streams.h"

namespace tandem {
namespace fork_guard_internal {
std::atomic<uint32_t> fork_count{0};
}
namespace {

// Held during fork, so that the child never has an incomplete list.
struct GuardedFds {
  std::mutex mutex;
  std::vector<int> descriptors;
};

GuardedFds& TheGuarded() {
  static GuardedFds* const guarded = [] {
    pthread_atfork([] { TheGuarded().mutex.lock(); },
                   [] { TheGuarded().mutex.unlock(); },
                   [] {
                     GuardedFds& mine = TheGuarded();
                     for (const int fd : mine.descriptors) close(fd);
                     mine.descriptors.clear();
                     // relaxed: the child has one thread.
                     fork_guard_internal::fork_count.fetch_add(
                         1, std::memory_order_relaxed);
                     mine.mutex.unlock();
                   });
    return new GuardedFds;  // never destroyed: exit handlers may fork
  }();
  return *guarded;
}

// Forks count from the program's start on.
[[maybe_unused]] const GuardedFds& kRegistered = TheGuarded();

}  // namespace

int OpenGuarded(const char* path) {
  GuardedFds& guarded = TheGuarded();
  const std::lock_guard<std::mutex> lock(guarded.mutex);
  const int fd = OpenAboveStandardStreams(path, O_RDWR);
  if (fd >= 0) guarded.descriptors.push_back(fd);
  return fd;
}

void CloseGuarded(int fd) {
  GuardedFds& guarded = TheGuarded();
  const std::lock_guard<std::mutex> lock(guarded.mutex);
  std::erase(guarded.descriptors, fd);
  close(fd);
}

void AfterForkInChild(void (*handler)()) {
  pthread_atfork(nullptr, nullptr, handler);
}

}  // namespace tandem
