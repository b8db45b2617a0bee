#include "engine_adapter/core/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <fstream>

namespace tandem {
namespace {

constexpr char kCgroupMount[] = "/sys/fs/cgroup";

int AllowedCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return CPU_COUNT(&cores);
}

// The line "0::/path" of /proc/self/cgroup; "/" when there is none.
std::string OwnCgroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "/";
}

// Of one group: "max 100000" or "150000 100000".
int CoresOf(const std::string& folder) {
  std::ifstream limit(folder + "/cpu.max");
  int64_t quota = 0;
  int64_t period = 0;
  if (!(limit >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>((quota + period - 1) / period);
}

}  // namespace

int CgroupCores(const std::string& mount, const std::string& group) {
  int least = 0;
  for (std::string path = group;; path.resize(path.rfind('/'))) {
    const int cores = CoresOf(mount + path);
    if (cores > 0) least = least == 0 ? cores : std::min(least, cores);
    if (path.find('/') == std::string::npos) return least;
  }
}

int SuitableThreads(uint32_t num_envs) {
  int threads = AllowedCores();
  const int limit = CgroupCores(kCgroupMount, OwnCgroup());
  if (limit > 0) threads = std::min(threads, limit);
  threads = static_cast<int>(
      std::min(static_cast<uint32_t>(std::max(threads, 1)), num_envs));
  return std::max(threads, 1);
}

}  // namespace tandem
