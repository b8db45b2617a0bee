#include "engine_adapter/host/gpu_arrays.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/memory/gpu_plan.h"

namespace tandem {

absl::StatusOr<std::shared_ptr<ExportedArrays>> MakeGpuArrays(
    const EngineSchema& schema,
    const std::function<void(absl::string_view)>& log) {
  std::shared_ptr<ExportedArrays> none;
  if (!schema.gpu) return none;
  const GpuSchema& gpu = *schema.gpu;
  if (gpu.memory) {
    if (gpu.cuda_device == 0 && gpu.fills_cpu) return none;
    return MakeError(ErrorCode::kInvalidArgument,
                     "an engine with GPU memory of its own: expected "
                     "cuda_device 0 and observations in the region, found "
                     "another device or gpu_only");
  }
  TANDEM_ASSIGN_OR_RETURN(const CudaSetting setting, ReadCudaSetting());
  auto made = ExportedArrays::Make(
      gpu.cuda_device,
      PlanGpuArrays(schema.num_envs, schema.obs_size, schema.fields,
                    gpu.image_width, gpu.image_height),
      schema.num_envs);
  if (made.ok() || setting == CudaSetting::kRequire || !gpu.fills_cpu) {
    return made;
  }
  if (log) {
    log(absl::StrCat("without arrays on a GPU: ", made.status().message()));
  }
  return none;
}

GpuSpec GpuSpecOf(const ExportedArrays* gpu, const EngineSchema& schema) {
  if (schema.gpu && schema.gpu->memory) {
    return GpuSpecOf(*schema.gpu->memory, schema.gpu->image_width,
                     schema.gpu->image_height);
  }
  if (gpu == nullptr) return {};
  GpuSpec spec = gpu->spec();
  spec.fills_cpu = schema.gpu->fills_cpu;
  return spec;
}

}  // namespace tandem
