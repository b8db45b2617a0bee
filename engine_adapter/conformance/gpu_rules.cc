// Gpu: arrays in the memory of a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/conformance/engine_facts.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "engine_adapter/conformance/engine_under_test.h"
#include "schema/layout/field.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/imported_arrays.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace {

class Gpu : public EngineRule {
 protected:
  explicit Gpu(std::initializer_list<Capability> needs = {Capability::kGpu})
      : EngineRule(needs) {}

  // Opens the arrays of the attached client.
  void Open() {
    const absl::StatusOr<const CudaDriver*> driver = CudaDriver::Load();
    Require(driver.status());
    auto opened = ImportedArrays::Open(*engine_.client);
    Require(opened.status());
    gpu_ = *std::move(opened);
    auto context = PrimaryContext::Of(**driver, gpu_->device());
    Require(context.status());
    context_ = *std::move(context);
  }

  // The array of the last exchange, behind the engine's work on the device.
  std::vector<std::byte> Read(const FieldRecord& array, size_t bytes) {
    std::vector<std::byte> values(bytes);
    const CurrentContext current(*context_);
    Require(current.status());
    Require(gpu_->WaitOn(nullptr));
    Require(context_->driver().Check(
        context_->cuda().MemcpyToHost(values.data(), gpu_->At(array), bytes,
                                      /*stream=*/nullptr),
        "cuMemcpyDtoHAsync"));
    Require(gpu_->AwaitReaders());
    return values;
  }

  std::shared_ptr<ImportedArrays> gpu_;
  std::shared_ptr<const PrimaryContext> context_;
};

class GpuAndHost : public Gpu {
 protected:
  GpuAndHost() : Gpu({Capability::kGpu, Capability::kHostObservations}) {}

  void ExpectSame() {
    const std::vector<FieldArray> fields = FieldsOf(arrays(), FieldRole::kObs);
    for (const FieldRecord& array : gpu_->arrays()) {
      if (array.role != FieldRole::kObs) continue;
      const FieldArray* const field =
          FindField(fields, FieldRole::kObs, PathOf(array));
      ASSERT_NE(field, nullptr) << PathOf(array);
      EXPECT_EQ(field->type, array.type) << field->path;
      EXPECT_TRUE(
          std::ranges::equal(Read(array, field->data.size()), field->data))
          << "'" << field->path << "' of frame " << frame_seq();
    }
  }
};

TEST_F(Gpu, ObservationsHaveArraysOfTheirEnvironments) {
  Begin();
  Open();
  EXPECT_EQ(gpu_->num_envs(), kEnvs);
  EXPECT_TRUE(std::ranges::any_of(gpu_->arrays(), [](const FieldRecord& array) {
    return array.role == FieldRole::kObs;
  }));
}

TEST_F(Gpu, ObservationsAreFiniteAfterEachStepAndReset) {
  Begin();
  Open();
  for (size_t step = 0; step < 10; ++step) {
    Step(step);
    if (step == 5) Reset({0, 2}, 7);
    for (const FieldRecord& array : gpu_->arrays()) {
      if (array.role != FieldRole::kObs || array.type != FieldType::kFloat32) {
        continue;
      }
      std::vector<float> values(kEnvs * FieldValues(array));
      const std::vector<std::byte> bytes =
          Read(array, values.size() * sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      EXPECT_TRUE(std::ranges::all_of(
          values, [](float value) { return std::isfinite(value); }))
          << PathOf(array) << ", step " << step;
    }
  }
}

TEST_F(GpuAndHost, BothHaveTheSameObservations) {
  Begin();
  Open();
  ExpectSame();
  for (size_t step = 0; step < 20; ++step) {
    Step(step);
    ExpectSame();
  }
  Reset({1}, 3);
  ExpectSame();
}

TEST_F(GpuAndHost, TheNextClientOpensThemAgain) {
  Begin();
  Open();
  Step();
  const std::shared_ptr<ImportedArrays> kept = std::move(gpu_);
  engine_.client.reset();
  Attach();
  Open();
  Step();
  ExpectSame();
  EXPECT_EQ(kept->num_envs(), gpu_->num_envs());  // it stays open, too
}

}  // namespace
}  // namespace tandem
