// How many threads it makes sense to step environments on.
//
// Data flow: affinity mask, cgroup limits, environments -> a number of threads.
//
//   ThreadPool pool(SuitableThreads(num_envs));

#ifndef TANDEM_ENGINE_ADAPTER_CORE_CPU_COUNT_H_
#define TANDEM_ENGINE_ADAPTER_CORE_CPU_COUNT_H_

#include <cstdint>
#include <string>

namespace tandem {

// The least of: the cores that this process may run on, the CPU limit of its
// cgroup (version 2), `num_envs`; at least 1. Reads files.
int SuitableThreads(uint32_t num_envs);

// The CPU limit of a version 2 cgroup in whole cores, rounded up: the tightest
// of it and the groups above it. 0: none. `mount` is where the hierarchy is
// mounted, `group` the path in it.
int CgroupCores(const std::string& mount, const std::string& group);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_CPU_COUNT_H_
