#include "transport/exported_arrays.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "schema/layout/field.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"
#include "transport/gpu/testing/standin_library.h"
#include "transport/memory/gpu_plan.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 10;

template <typename Function>
Function* StandInFunction(const char* name) {
  void* const library = dlopen(StandInLibrary().c_str(), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

int Allocations() {
  return StandInFunction<int(const char*)>("standin_count")("allocations");
}

// The stand-in's memory of a device is this process's.
class ExportedArraysTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("TANDEM_CUDA_LIBRARY", StandInLibrary().c_str(), 1);
  }

  static absl::StatusOr<std::shared_ptr<ExportedArrays>> Make() {
    return ExportedArrays::Make(0, PlanGpuArrays(kEnvs, 1, {}, 0, 0), kEnvs);
  }
  // float32[kEnvs] of the first array with this role.
  static float* ValuesOf(const ExportedArrays& gpu, FieldRole role) {
    return reinterpret_cast<float*>(gpu.At(
        *std::ranges::find(gpu.spec().arrays, role, &FieldRecord::role)));
  }
  static std::vector<float> RowsOf(const ExportedArrays& gpu, FieldRole role) {
    const auto context =
        PrimaryContext::Of(*CudaDriver::Load().value(), gpu.device()).value();
    const CurrentContext current(*context);
    EXPECT_EQ(context->cuda().StreamSynchronize(nullptr), kCudaSuccess);
    const float* const values = ValuesOf(gpu, role);
    return {values, values + kEnvs};
  }
};

TEST_F(ExportedArraysTest, FinalObservationsOfTheseEnvironmentsAreKept) {
  const auto gpu = Make().value();
  float* const obs = ValuesOf(*gpu, FieldRole::kObs);
  for (uint32_t env = 0; env < kEnvs; ++env) {
    obs[env] = static_cast<float>(env + 1);
  }
  // Runs of neighbours at both ends, and one alone.
  const std::vector<uint32_t> envs = {0, 1, 4, 7, 8, 9};
  EXPECT_TRUE(gpu->KeepFinalRows(envs).ok());
  EXPECT_EQ(RowsOf(*gpu, FieldRole::kFinalObs),
            (std::vector<float>{1, 2, 0, 0, 5, 0, 0, 8, 9, 10}));
}

TEST_F(ExportedArraysTest, RewardsOfTheseEnvironmentsAreZeroed) {
  const auto gpu = Make().value();
  std::fill_n(ValuesOf(*gpu, FieldRole::kReward), kEnvs, 1.0F);
  const std::vector<uint32_t> envs = {9, 0, 3};
  EXPECT_TRUE(gpu->ZeroRewards(envs).ok());
  EXPECT_EQ(RowsOf(*gpu, FieldRole::kReward),
            (std::vector<float>{0, 1, 1, 0, 1, 1, 1, 1, 1, 0}));
}

TEST_F(ExportedArraysTest, AFailureFreesWhatWasMade) {
  EXPECT_TRUE(Make().ok());
  auto* const fail =
      StandInFunction<void(const char*, int, int)>("standin_fail");
  for (const char* function :
       {"cuMemAlloc_v2", "cuMemsetD8Async", "cuIpcGetMemHandle",
        "cuEventCreate", "cuIpcGetEventHandle"}) {
    fail(function, kCudaInvalidValue, 0);
    EXPECT_EQ(CodeOf(Make().status()), ErrorCode::kGpuFailed) << function;
    fail(function, kCudaSuccess, 0);
    EXPECT_EQ(Allocations(), 0) << function;
  }
}

}  // namespace
}  // namespace tandem
