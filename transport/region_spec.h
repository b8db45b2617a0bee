// RegionSpec: the parameters of a region, which its owner chooses.
//
// Data flow: RegionSpec -> the owner's side -> the region's header and tables.
//
//   const RegionSpec spec = {
//       .num_envs = 64, .obs_size = 17, .act_size = 6, .task = "demo"};

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "transport/frame_geometry.h"

namespace tandem {

// The parameters of a field. field.h explains each member and the limits.
struct FieldSpec {
  FieldRole role = FieldRole::kObs;
  FieldType type = FieldType::kFloat32;
  std::vector<uint32_t> shape = {};  // of one environment; {}: one number
  std::string path = {};
};

// What an engine exports: one allocation on a GPU with all arrays.
struct GpuSpec {
  GpuMode mode = GpuMode::kCpu;  // kCpu: none
  uint32_t device_id = 0;
  std::array<uint8_t, 16> device_uuid = {};
  std::array<uint8_t, 64> memory_handle = {};
  std::array<uint8_t, 64> event_handle = {};
  uint64_t alloc_bytes = 0;
  bool fills_cpu = true;  // kGpuFillsCpu
  std::vector<FieldRecord> arrays = {};
};

// Memory of a GPU that an engine has exported itself, such as with Vulkan, with
// an image of each environment: uint8[num_envs, height, width, channels], rows
// from the top, without gaps.
struct GpuMemory {
  int fd = -1;             // an opaque descriptor of the allocation
  uint64_t bytes = 0;      // of the allocation
  uint64_t offset = 0;     // of the images in it; a multiple of 256
  uint32_t channels = 4;   // 3: RGB, 4: RGBA
  bool dedicated = false;  // as Vulkan's VkMemoryDedicatedAllocateInfo
  std::array<uint8_t, 16> device_uuid = {};
};

// Images that are part of each environment's observation: RGB, a byte each.
struct ImageSize {
  static constexpr uint32_t kChannels = 3;
  uint32_t width = 0;  // pixels; 0: no images
  uint32_t height = 0;
};

// The parameters of a region.
struct RegionSpec {
  uint32_t num_envs = 0;
  // float32 values per environment; 0: the observation is in `fields`, and the
  // action, too.
  uint32_t obs_size = 0;
  uint32_t act_size = 0;
  uint32_t ring_bytes = kDefaultRingBytes;  // of data in each RPC ring
  std::string task;                         // at most 63 bytes
  uint32_t info_size = 0;                   // float64 values per environment
  std::string description = {};             // JSON; "": none
  FrameGeometry frames = {.capacity = 0};   // capacity 0: no frame ring
  bool commands = false;                    // whether the engine answers RPCs
  bool attendants = false;                  // whether it has attendants' slots
  ImageSize images = {};
  // Bytes of an image in each slot of requested images, rounded up to a
  // multiple of kSectionAlignment; 0: no slots.
  uint32_t image_slot_bytes = 0;
  // If there are any, the region has a table of all observations, final
  // observations, actions and other fields. PlanFields adds those that follow
  // from the members above: the float32 rows, and the final observations. So no
  // spec has the role kFinalObs, and none has kObs (kAction) unless obs_size
  // (act_size) is 0.
  std::vector<FieldSpec> fields = {};
  // Worker processes that simulate the environments, at most num_envs. 0: the
  // engine simulates them itself.
  uint32_t workers = 0;
  bool subsets = false;  // whether the engine knows the flag kSkip
  GpuSpec gpu = {};      // arrays in the memory of a GPU
};

}  // namespace tandem
