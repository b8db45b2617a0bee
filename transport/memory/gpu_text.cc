#include "transport/memory/gpu_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"

namespace tandem {

std::string GpuPathText(const LrbcHeader& header) {
  if (!HasGpuArrays(header)) return "";
  switch (static_cast<GpuMode>(header.gpu_obs_mode)) {
    case GpuMode::kCudaIpc:
      return "CUDA IPC";
    case GpuMode::kVulkanExternal:
      return "Vulkan";
    default:
      return absl::StrCat("mode ", uint32_t{header.gpu_obs_mode});
  }
}

std::string GpuUuidText(std::span<const uint8_t, 16> uuid) {
  std::string text = "GPU-";
  for (size_t at = 0; at < uuid.size(); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text.push_back('-');
    absl::StrAppend(&text, absl::Hex(uuid[at], absl::kZeroPad2));
  }
  return text;
}

}  // namespace tandem
