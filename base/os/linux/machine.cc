#include "base/os/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "base/os/linux/cgroup_cores.h"

namespace tandem {
namespace {

// Returns the path of the line "0::/path" in /proc/self/cgroup; "/" without
// such a line.
std::string OwnCgroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "/";
}

// Parses the limit of one group: "max 100000" or "150000 100000".
int CoresOf(const std::string& folder) {
  std::ifstream limit(folder + "/cpu.max");
  int64_t quota = 0;
  int64_t period = 0;
  if (!(limit >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>((quota + period - 1) / period);
}

// Reads a file from its start; returns the number of bytes, 0 after an error.
size_t ReadText(const UniqueFd& file, std::span<char> text) {
  const ssize_t bytes = pread(file.get(), text.data(), text.size(), 0);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

}  // namespace

void YieldCore() { sched_yield(); }

int CurrentCore() { return sched_getcpu(); }

OnCore::OnCore(int core) : core_(-1) {
  static_assert(sizeof(before_) == sizeof(cpu_set_t));
  auto& before = *reinterpret_cast<cpu_set_t*>(before_);
  if (core < 0 || core >= CPU_SETSIZE ||
      sched_getaffinity(0, sizeof(before), &before) != 0 ||
      !CPU_ISSET(core, &before)) {
    return;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof(one), &one) == 0) core_ = core;
}

OnCore::~OnCore() {
  if (core_ < 0) return;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof(now), &now) != 0) return;
  if (CPU_COUNT(&now) != 1 || !CPU_ISSET(core_, &now)) return;
  sched_setaffinity(0, sizeof(before_),
                    reinterpret_cast<const cpu_set_t*>(before_));
}

bool IsRealTimeThread() {
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

int AllowedCores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores)
                                                          : 0;
}

int UsableCores() {
  const int allowed = std::max(AllowedCores(), 1);
  const int limit = CgroupCores("/sys/fs/cgroup", OwnCgroup());
  return limit > 0 ? std::min(allowed, limit) : allowed;
}

int CgroupCores(const std::string& mount, const std::string& group) {
  int least = 0;
  for (std::string path = group;; path.resize(path.rfind('/'))) {
    const int cores = CoresOf(mount + path);
    if (cores > 0) least = least == 0 ? cores : std::min(least, cores);
    if (path.find('/') == std::string::npos) return least;
  }
}

uint64_t SharedCacheBytes() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

bool KernelTellsTimeByCounter() {
  const UniqueFd file(
      open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
           O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text;
  const std::string_view name(text.data(), ReadText(file, text));
  return name == "tsc\n" || name == "arch_sys_counter\n";
}

void FillRandom(std::span<std::byte> bytes) {
  // So few bytes come at once; a signal interrupts only during the start.
  while (getrandom(bytes.data(), bytes.size(), 0) !=
         static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) std::abort();
  }
}

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

void GoToBackground() {
  constexpr int kNiceness = 19;
  (void)setpriority(PRIO_PROCESS, 0, kNiceness);
}

CoreWait::CoreWait()
    : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

int64_t CoreWait::Nanos() const {
  // The file has nanoseconds on a core, nanoseconds waiting for a core, and the
  // number of time slices (Linux: proc(5)).
  std::array<char, 96> text;
  text[ReadText(file_, std::span(text).first<95>())] = '\0';
  long long on_core = 0;
  long long in_line = 0;
  if (std::sscanf(text.data(), "%lld %lld", &on_core, &in_line) != 2) return 0;
  return in_line;
}

}  // namespace tandem
