// Memory of a Vulkan device in two processes: gpu_obs_mode 2.
#include "transport/gpu/vulkan_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "transport/gpu/fd_offer.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/gpu_plan.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

// The code of VulkanDevice::Open in a child: a process that has loaded a driver
// must not fork.
ErrorCode CodeInAChild() {
  const pid_t child = fork();
  if (child == 0) {
    _exit(static_cast<int>(CodeOf(VulkanDevice::Open({}).status())));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return static_cast<ErrorCode>(WEXITSTATUS(status));
}

bool HasVulkan() {
  static const bool has = CodeInAChild() == ErrorCode::kOk;
  return has;
}

#define TANDEM_NEEDS_VULKAN() \
  if (!HasVulkan()) GTEST_SKIP() << "no Vulkan driver that shares memory"

RegionSpec SpecOf(const VulkanDevice& device, const FdOffer& offer) {
  RegionSpec spec = {.num_envs = 2, .obs_size = 3, .act_size = 1, .task = "t"};
  spec.gpu = {.mode = GpuMode::kVulkanExternal};
  spec.gpu.arrays = PlanGpuArrays(spec.num_envs, spec.obs_size, {}, 8, 4);
  spec.gpu.alloc_bytes = GpuBytes(spec.gpu.arrays, spec.num_envs);
  std::ranges::copy(device.uuid(), spec.gpu.device_uuid.begin());
  std::ranges::copy(offer.name(), spec.gpu.memory_handle.begin());
  return spec;
}

uint64_t AllBytes() { return GpuBytes(PlanGpuArrays(2, 3, {}, 8, 4), 2); }

// An engine whose images are 7, until its standard input closes.
void Serve(const std::string& name, int ready, int end) {
  const auto device = VulkanDevice::Open({}).value();
  const auto memory = VulkanMemory::Allocate(device, AllBytes()).value();
  const auto offer = FdOffer::Start(memory->Export().value()).value();
  const RegionSpec spec = SpecOf(*device, *offer);
  auto region = OwnedRegion::Create(name, spec, {}).value();
  std::ranges::fill(memory->bytes(), std::byte{0});
  std::ranges::fill(
      memory->bytes().subspan(spec.gpu.arrays.back().offset, 2 * 8 * 4 * 3),
      std::byte{7});
  if (!region.Link().ok()) _exit(1);
  char byte = 1;
  (void)!write(ready, &byte, 1);
  (void)!read(end, &byte, 1);
}

// The first test: the ones below load a driver into this process.
TEST(VulkanMemory, WithoutADriverTheErrorSaysSo) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("VK_ICD_FILENAMES", "/no/such/driver.json", 1);
    setenv("VK_DRIVER_FILES", "/no/such/driver.json", 1);
    const ErrorCode code = CodeOf(VulkanDevice::Open({}).status());
    _exit(code == ErrorCode::kGpuDriverMissing ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(VulkanMemory, AClientReadsTheImagesOfAnEngineInAnotherProcess) {
  TANDEM_NEEDS_VULKAN();
  const std::string name = UniqueRegionName("vulkan");
  int ready[2];
  int end[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(end), 0);
  const pid_t engine = fork();
  if (engine == 0) {
    Serve(name, ready[1], end[0]);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);

  const AttachedRegion region = AttachedRegion::Open(name).value();
  const LrbcHeader& plan = region.plan();
  EXPECT_EQ(plan.gpu_obs_mode, static_cast<uint8_t>(GpuMode::kVulkanExternal));
  VulkanDevice::Uuid uuid;
  std::ranges::copy(plan.gpu_device_uuid, uuid.begin());
  const auto device = VulkanDevice::Open(uuid).value();
  const char* const text = reinterpret_cast<const char*>(plan.gpu_obs_handle);
  const absl::string_view handle(text,
                                 strnlen(text, sizeof(plan.gpu_obs_handle)));
  const auto memory = VulkanMemory::Import(device, TakeFd(handle, 10).value(),
                                           plan.gpu_alloc_size)
                          .value();
  const FieldRecord& images = region.gpu_arrays().back();
  const auto pixels =
      memory->bytes().subspan(images.offset, FieldBytes(images, plan.num_envs));
  EXPECT_EQ(pixels.size(), 192U);
  EXPECT_TRUE(std::ranges::all_of(
      pixels, [](std::byte pixel) { return pixel == std::byte{7}; }));

  // The engine dies: the import stays, and the name is stale.
  kill(engine, SIGKILL);
  waitpid(engine, nullptr, 0);
  EXPECT_EQ(pixels[0], std::byte{7});
  EXPECT_EQ(CodeOf(TakeFd(handle, 10).status()), ErrorCode::kGpuStaleHandle);
}

TEST(VulkanMemory, AnotherDeviceHasItsError) {
  TANDEM_NEEDS_VULKAN();
  EXPECT_EQ(CodeOf(VulkanDevice::Open(VulkanDevice::Uuid{}).status()),
            ErrorCode::kGpuOtherDevice);
}

TEST(VulkanMemory, WhatIsImportedIsTheExportersMemory) {
  TANDEM_NEEDS_VULKAN();
  const auto device = VulkanDevice::Open({}).value();
  const auto memory = VulkanMemory::Allocate(device, 4096).value();
  const auto twin =
      VulkanMemory::Import(device, memory->Export().value(), 4096).value();
  memory->bytes()[100] = std::byte{42};
  EXPECT_EQ(twin->bytes()[100], std::byte{42});
}

}  // namespace
}  // namespace tandem
