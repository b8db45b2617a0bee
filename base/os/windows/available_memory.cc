#include "base/os/available_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/windows/native.h"

namespace tandem {

uint64_t MemoryLimit::available_bytes() const {
  return limit_bytes - std::min(limit_bytes, used_bytes - reclaimable_bytes);
}

std::optional<MemoryLimit> TightestMemoryLimit(const ControlGroupPaths&) {
  return std::nullopt;
}

// What is free, and what the page file still has room for.
uint64_t AvailableMemoryBytes(const ControlGroupPaths&) {
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

absl::Status CheckMemory(uint64_t bytes, absl::string_view what_needs,
                         absl::string_view how_to_need_less,
                         const ControlGroupPaths& groups) {
  const uint64_t available = AvailableMemoryBytes(groups);
  if (bytes <= available) return absl::OkStatus();
  return MakeError(ErrorCode::kOutOfSharedMemory,
                   absl::StrCat(what_needs, " ", bytes, " bytes of memory, ",
                                available, " are available on this machine; ",
                                how_to_need_less, ", or end other programs"));
}

}  // namespace tandem
