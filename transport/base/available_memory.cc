#include "transport/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

// From a file of lines such as "MemAvailable:  1024 kB".
std::optional<uint64_t> BytesIn(const char* path, absl::string_view wanted) {
  std::ifstream file(path);
  std::string key;
  for (std::string rest; file >> key; std::getline(file, rest)) {
    uint64_t kibibytes = 0;
    if (key == wanted && file >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

uint64_t MachinesBytes() {
  return BytesIn("/proc/meminfo", "MemAvailable:")
      .value_or(std::numeric_limits<uint64_t>::max());
}

}  // namespace

uint64_t AvailableMemoryBytes(const ControlGroupPaths& groups) {
  const std::optional<MemoryLimit> limit = TightestMemoryLimit(groups);
  const uint64_t machines = MachinesBytes();
  return limit ? std::min(machines, limit->available_bytes()) : machines;
}

uint64_t ResidentMemoryBytes() {
  constexpr char kStatus[] = "/proc/self/status";
  return BytesIn(kStatus, "VmRSS:").value_or(0) +
         BytesIn(kStatus, "VmPTE:").value_or(0);
}

absl::Status CheckMemory(uint64_t bytes, absl::string_view what_needs,
                         absl::string_view how_to_need_less,
                         const ControlGroupPaths& groups) {
  const std::optional<MemoryLimit> limit = TightestMemoryLimit(groups);
  const uint64_t machines = MachinesBytes();
  const std::string needs = absl::StrCat(what_needs, " ", bytes, " bytes of ");
  if (limit && bytes > limit->available_bytes() &&
      limit->available_bytes() <= machines) {
    return MakeError(
        ErrorCode::kOutOfSharedMemory,
        absl::StrCat(needs, "memory, ", limit->available_bytes(),
                     " are available: a control group limits its processes to ",
                     limit->limit_bytes, " bytes, they use ", limit->used_bytes,
                     ", of which ", limit->reclaimable_bytes,
                     " can be reclaimed; ", how_to_need_less,
                     ", or raise the limit (Docker: --memory), which stands "
                     "in ",
                     limit->file));
  }
  if (bytes > machines) {
    return MakeError(ErrorCode::kOutOfSharedMemory,
                     absl::StrCat(needs, "memory, ", machines,
                                  " are available on this machine; ",
                                  how_to_need_less, ", or end other programs"));
  }
  return absl::OkStatus();
}

}  // namespace tandem
