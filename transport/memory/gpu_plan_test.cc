// Tables of arrays on a GPU, as the engine plans them and as a client checks
// them.
#include "transport/memory/gpu_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "schema/goldens/testing/samples.h"
#include "schema/layout/field.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/region_plan.h"

namespace tandem {
namespace {

RegionSpec GpuRegion(std::vector<FieldSpec> fields = {}) {
  RegionSpec spec = {.num_envs = 3, .obs_size = 5, .act_size = 2, .task = "t"};
  if (!fields.empty()) spec.obs_size = 0;
  spec.fields = std::move(fields);
  spec.gpu = {.mode = GpuMode::kCudaIpc, .device_id = 1};
  spec.gpu.arrays = PlanGpuArrays(spec.num_envs, spec.obs_size, spec.fields,
                                  /*image_width=*/4, /*image_height=*/2);
  spec.gpu.alloc_bytes = GpuBytes(spec.gpu.arrays, spec.num_envs);
  return spec;
}

TEST(GpuPlan, HasEachArrayOnceAndAligned) {
  const RegionSpec spec = GpuRegion();
  std::vector<FieldRole> roles;
  for (const FieldRecord& array : spec.gpu.arrays) {
    roles.push_back(array.role);
    EXPECT_EQ(array.offset % kGpuAlignment, 0U);
  }
  EXPECT_EQ(roles, (std::vector{FieldRole::kObs, FieldRole::kFinalObs,
                                FieldRole::kReward, FieldRole::kImages}));
  EXPECT_EQ(spec.gpu.alloc_bytes, 4 * kGpuAlignment);
}

TEST(GpuPlan, TheRegionsHeaderPassesTheClientsChecks) {
  const RegionSpec spec = GpuRegion();
  const LrbcHeader header = PlanRegion(spec, 1).value();
  EXPECT_TRUE(HasGpuArrays(header));
  EXPECT_EQ(header.gpu_obs_mode, 1);
  EXPECT_EQ(header.gpu_device_id, 1U);
  EXPECT_EQ(header.gpu_flags, kGpuFillsCpu);
  EXPECT_TRUE(CheckHeader(header, header.region_size).ok());
  EXPECT_TRUE(
      CheckHeader(header, header.region_size, {.gpu_arrays = spec.gpu.arrays})
          .ok());
}

TEST(GpuPlan, FieldsOfObservationsAreArrays) {
  const RegionSpec spec = GpuRegion({{.role = FieldRole::kObs,
                                      .type = FieldType::kUint8,
                                      .shape = {8, 8},
                                      .path = "/image"},
                                     {.role = FieldRole::kObs,
                                      .type = FieldType::kFloat64,
                                      .shape = {},
                                      .path = "/height"}});
  EXPECT_EQ(spec.gpu.arrays.size(), 6U);
  EXPECT_EQ(PathOf(spec.gpu.arrays[0]), "/image");
  EXPECT_TRUE(PlanRegion(spec, 1).ok());
}

TEST(GpuPlan, ArraysWithoutAnObservationAreInvalid) {
  RegionSpec spec = GpuRegion();
  spec.gpu.arrays.erase(spec.gpu.arrays.begin(), spec.gpu.arrays.begin() + 2);
  EXPECT_EQ(CodeOf(PlanRegion(spec, 1).status()), ErrorCode::kInvalidArgument);
}

TEST(GpuPlan, ARegionWithoutAGpuHasZeroBytesThere) {
  RegionSpec spec = GpuRegion();
  spec.gpu = {};
  const LrbcHeader header = PlanRegion(spec, 1).value();
  EXPECT_FALSE(HasGpuArrays(header));
  EXPECT_EQ(header.gpu_arrays_offset, 0U);
  EXPECT_EQ(header.gpu_available, 0);
}

TEST(GpuPlan, TheGoldenPassesTheClientsChecks) {
  const LrbcHeader header = SampleGpuHeader();
  EXPECT_TRUE(
      CheckHeader(header, header.region_size, {.gpu_arrays = SampleGpuArrays()})
          .ok());
}

RegionSpec MemoryRegion(uint32_t channels = 4) {
  RegionSpec spec = GpuRegion();
  spec.gpu = GpuSpecOf(
      {.fd = 7, .bytes = 1 << 20, .offset = 768, .channels = channels}, 4, 2);
  return spec;
}

TEST(GpuPlan, ImagesInMemoryOfTheEnginesOwnPassTheChecks) {
  EXPECT_TRUE(PlanRegion(MemoryRegion(3), 1).ok());
  EXPECT_TRUE(PlanRegion(MemoryRegion(4), 1).ok());
  const LrbcHeader golden = SampleGpuMemoryHeader();
  EXPECT_TRUE(CheckHeader(golden, golden.region_size,
                          {.gpu_arrays = SampleGpuMemoryArrays()})
                  .ok());
}

using Header = LrbcHeader*;
using Arrays = std::vector<FieldRecord>*;
struct Fault {
  std::string fact;  // of the client's error
  std::function<void(Header, Arrays)> make;
};

void ExpectMismatch(const RegionSpec& spec, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    LrbcHeader header = PlanRegion(spec, 1).value();
    std::vector<FieldRecord> arrays = spec.gpu.arrays;
    fault.make(&header, &arrays);
    header.gpu_array_count = static_cast<uint32_t>(arrays.size());
    header.gpu_arrays_crc32 = GpuArraysCrc(header, arrays);
    header.layout_crc32 = LayoutCrc(header);
    const absl::Status status =
        CheckHeader(header, header.region_size, {.gpu_arrays = arrays});
    EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch) << fault.fact;
    EXPECT_TRUE(absl::StrContains(status.message(), fault.fact))
        << fault.fact << ": " << status.message();
  }
}

TEST(GpuPlan, EachFaultIsALayoutMismatch) {
  const std::vector<Fault> faults = {
      {"gpu_obs_mode", [](Header header, Arrays) { header->gpu_obs_mode = 3; }},
      {"gpu_available",
       [](Header header, Arrays) { header->gpu_available = 0; }},
      {"role",
       [](Header, Arrays arrays) { (*arrays)[0].role = FieldRole::kAction; }},
      {"type",
       [](Header, Arrays arrays) { (*arrays)[0].type = FieldType{99}; }},
      {"dimensions", [](Header, Arrays arrays) { (*arrays)[3].dims = 9; }},
      {"float32[5]", [](Header, Arrays arrays) { (*arrays)[0].shape[0] = 4; }},
      {"float32[]",
       [](Header, Arrays arrays) { (*arrays)[2].type = FieldType::kFloat64; }},
      {"uint8[height",
       [](Header, Arrays arrays) { (*arrays)[3].shape[2] = 4; }},
      {"multiple of 256",
       [](Header, Arrays arrays) { (*arrays)[1].offset += 8; }},
      {"inside the allocation",
       [](Header header, Arrays) { header->gpu_alloc_size = 700; }},
      {"inside the allocation",
       [](Header, Arrays arrays) { (*arrays)[3].offset = ~uint64_t{255}; }},
      {"behind the end",
       [](Header, Arrays arrays) { (*arrays)[2].offset = 0; }},
      {"final_obs",
       [](Header, Arrays arrays) { arrays->erase(arrays->begin() + 1); }},
      {"gpu_alloc_offset",
       [](Header header, Arrays) { header->gpu_alloc_offset = 256; }}};
  ExpectMismatch(GpuRegion(), faults);
}

TEST(GpuPlan, EachFaultOfMemoryOfTheEnginesOwnIsALayoutMismatch) {
  const std::vector<Fault> faults = {
      {"gpu_obs_handle",
       [](Header header, Arrays) { header->gpu_obs_handle[3] = 0x80; }},
      {"gpu_obs_handle",
       [](Header header, Arrays) { header->gpu_obs_handle[4] = 2; }},
      {"images alone",
       [](Header, Arrays arrays) { (*arrays)[0].role = FieldRole::kObs; }},
      {"3 (or 4", [](Header, Arrays arrays) { (*arrays)[0].shape[2] = 5; }},
      {"gpu_alloc_offset",
       [](Header header, Arrays) { header->gpu_alloc_offset = 0; }}};
  ExpectMismatch(MemoryRegion(), faults);
}

TEST(GpuPlan, AnotherChecksumIsALayoutMismatch) {
  const RegionSpec spec = GpuRegion();
  LrbcHeader header = PlanRegion(spec, 1).value();
  ++header.gpu_arrays_crc32;
  const absl::Status status =
      CheckHeader(header, header.region_size, {.gpu_arrays = spec.gpu.arrays});
  EXPECT_TRUE(absl::StrContains(status.message(), "gpu_arrays_crc32"))
      << status.message();
}

TEST(GpuPlan, ATableOutsideTheFileIsALayoutMismatch) {
  LrbcHeader header = PlanRegion(GpuRegion(), 1).value();
  header.gpu_arrays_offset = header.region_size;
  EXPECT_EQ(CodeOf(CheckHeader(header, header.region_size)),
            ErrorCode::kLayoutMismatch);
}

}  // namespace
}  // namespace tandem
