#include "base/os/available_memory.h"

#include <algorithm>

#include "base/os/windows/native.h"

namespace tandem {

std::optional<MemoryLimit> TightestMemoryLimit(const ControlGroupPaths&) {
  return std::nullopt;
}

// What is free, and what the page file still has room for.
uint64_t FreeMachineBytes() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof(status);
  if (!GlobalMemoryStatusEx(&status)) return ~uint64_t{0};
  return std::min(status.ullAvailPhys, status.ullAvailPageFile);
}

uint64_t ResidentMemoryBytes() {
  PROCESS_MEMORY_COUNTERS counters = {};
  return K32GetProcessMemoryInfo(GetCurrentProcess(), &counters,
                                 sizeof(counters))
             ? counters.WorkingSetSize
             : 0;
}

}  // namespace tandem
