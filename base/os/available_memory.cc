#include "base/os/available_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {

uint64_t MemoryLimit::available_bytes() const {
  const uint64_t held = used_bytes - reclaimable_bytes;
  return limit_bytes - std::min(limit_bytes, held);
}

uint64_t AvailableMemoryBytes(const ControlGroupPaths& groups) {
  const std::optional<MemoryLimit> limit = TightestMemoryLimit(groups);
  const uint64_t machines = FreeMachineBytes();
  return limit ? std::min(machines, limit->available_bytes()) : machines;
}

absl::Status CheckMemory(uint64_t bytes, absl::string_view what_needs,
                         absl::string_view how_to_need_less,
                         const ControlGroupPaths& groups) {
  const std::optional<MemoryLimit> limit = TightestMemoryLimit(groups);
  const uint64_t machines = FreeMachineBytes();
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
