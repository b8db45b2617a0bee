// An engine in C++ whose observations are on a GPU, too: it counts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/server_main.h"
#include "transport/exported_arrays.h"
#include "transport/gpu/cuda_driver.h"

namespace tandem {
namespace {

constexpr uint32_t kObsSize = 2;  // steps of the episode, the last action

class GpuCounter final : public EngineBase {
 public:
  explicit GpuCounter(uint32_t num_envs)
      : schema_({.task = "GpuCounter",
                 .num_envs = num_envs,
                 .obs_size = kObsSize,
                 .act_size = 1,
                 .gpu = GpuSchema{}}),
        obs_(size_t{num_envs} * kObsSize) {}

  const EngineSchema& schema() const override { return schema_; }

  absl::Status Loop(EngineHost* host) {
    if (host->gpu() == nullptr) {
      return MakeError(ErrorCode::kUnsupported,
                       "expected arrays on a GPU, found no CUDA driver; next: "
                       "set TANDEM_CUDA_LIBRARY, or use a machine with a GPU");
    }
    TANDEM_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Load());
    TANDEM_ASSIGN_OR_RETURN(const auto context,
                            PrimaryContext::Of(*driver, host->gpu()->device()));
    while (!host->StopRequested()) {
      const EngineWork* const work = host->Next(Deadline::After(0.1));
      if (work == nullptr) continue;
      Count(*work);
      const ExportedArrays& gpu = *host->gpu();
      const CurrentContext current(*context);
      TANDEM_RETURN_IF_ERROR(current.status());
      TANDEM_RETURN_IF_ERROR(host->Done(driver->Check(
          context->cuda().MemcpyToDevice(gpu.At(gpu.spec().arrays.front()),
                                         obs_.data(),
                                         obs_.size() * sizeof(float), nullptr),
          "cuMemcpyHtoDAsync")));
    }
    return absl::OkStatus();
  }

 private:
  void Count(const EngineWork& work) {
    for (const ResetRequest& request : work.resets) {
      obs_[kObsSize * request.env] = 0;
      obs_[kObsSize * request.env + 1] =
          static_cast<float>(request.seed.value_or(0) % 9973);
    }
    for (const uint32_t env : work.steps) {
      ++obs_[kObsSize * env];
      obs_[kObsSize * env + 1] = work.step_io.actions[env];
      work.step_io.rewards[env] = work.step_io.actions[env];
      work.step_io.terminateds[env] = work.step_io.truncateds[env] = 0;
    }
    std::ranges::copy(
        obs_,
        (work.steps.empty() ? work.reset_io.obs : work.step_io.obs).begin());
  }

  const EngineSchema schema_;
  std::vector<float> obs_;  // [num_envs, kObsSize]
};

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::GpuCounter* served = nullptr;
  return tandem::RunTickedServer(
      argc, argv, "Serves environments that count on a GPU.",
      [&](const tandem::ServerOptions& options)
          -> absl::StatusOr<std::unique_ptr<tandem::EngineBase>> {
        auto engine = std::make_unique<tandem::GpuCounter>(options.num_envs);
        served = engine.get();
        return engine;
      },
      [&](tandem::EngineHost* host) { return served->Loop(host); });
}
