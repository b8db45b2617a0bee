#include "base/os/machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <algorithm>

namespace tandem {

void YieldCore() { sched_yield(); }

// A program can neither ask for its core nor choose it.
int CurrentCore() { return -1; }
OnCore::OnCore(int) : core_(-1) {}
OnCore::~OnCore() = default;

bool IsRealTimeThread() {
  int policy = 0;
  sched_param parameters;
  return pthread_getschedparam(pthread_self(), &policy, &parameters) == 0 &&
         (policy == SCHED_FIFO || policy == SCHED_RR);
}

int AllowedCores() {
  return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 0L));
}

int UsableCores() { return std::max(AllowedCores(), 1); }

uint64_t SharedCacheBytes() {
  int64_t found = 0;
  size_t size = sizeof(found);
  return sysctlbyname("hw.l3cachesize", &found, &size, nullptr, 0) == 0
             ? static_cast<uint64_t>(found)
             : 0;
}

bool KernelTellsTimeByCounter() { return false; }

void FillRandom(std::span<std::byte> bytes) {
  arc4random_buf(bytes.data(), bytes.size());
}

void NameThread(const char* name) { pthread_setname_np(name); }

void GoToBackground() {
  (void)setpriority(PRIO_DARWIN_THREAD, 0, PRIO_DARWIN_BG);
}

CoreWait::CoreWait() = default;
int64_t CoreWait::Nanos() const { return 0; }

}  // namespace tandem
