// VulkanDevice, VulkanMemory: memory of a Vulkan device that another process
// opens by a file descriptor (opaque fd).
//
// Data flow: Allocate -> Export -> FdOffer; TakeFd -> Import -> the same bytes
// in another process.
// Ownership: a memory keeps its device. Any thread may call, one at a time for
// each object. libvulkan.so.1 is loaded by dlopen; TANDEM_CUDA=no has no effect
// on it.
//
//   TANDEM_ASSIGN_OR_RETURN(auto device, VulkanDevice::Open(std::nullopt));
//   TANDEM_ASSIGN_OR_RETURN(auto memory, VulkanMemory::Allocate(device, 4096));
//   TANDEM_ASSIGN_OR_RETURN(UniqueFd fd, memory->Export());

#ifndef TANDEM_TRANSPORT_GPU_VULKAN_MEMORY_H_
#define TANDEM_TRANSPORT_GPU_VULKAN_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/os/unique_fd.h"

namespace tandem {

class VulkanDevice {
 public:
  using Uuid = std::array<uint8_t, 16>;

  // Opens the first device that exports memory by opaque fds, or that with this
  // UUID. Errors:
  //  - kGpuDriverMissing: no library, or no device.
  //  - kGpuOtherDevice: none with this UUID.
  //  - kUnsupported: it cannot export and import memory by opaque fds.
  //  - kGpuFailed.
  static absl::StatusOr<std::shared_ptr<const VulkanDevice>> Open(
      const std::optional<Uuid>& uuid);
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;
  ~VulkanDevice();

  const Uuid& uuid() const;
  const std::string& name() const;

 private:
  friend class VulkanMemory;
  struct Handles;
  explicit VulkanDevice(std::unique_ptr<Handles> handles);
  const std::unique_ptr<Handles> handles_;
};

class VulkanMemory {
 public:
  // Makes memory that other processes may open, and that this process can map.
  // kGpuFailed.
  static absl::StatusOr<std::unique_ptr<VulkanMemory>> Allocate(
      std::shared_ptr<const VulkanDevice> device, uint64_t bytes);
  // Opens memory of this size, which a device with the same UUID has exported.
  // kGpuStaleHandle: the descriptor is not such memory. kGpuFailed.
  static absl::StatusOr<std::unique_ptr<VulkanMemory>> Import(
      std::shared_ptr<const VulkanDevice> device, UniqueFd fd, uint64_t bytes);
  VulkanMemory(const VulkanMemory&) = delete;
  VulkanMemory& operator=(const VulkanMemory&) = delete;
  ~VulkanMemory();

  // Returns a new descriptor of the memory. kGpuFailed.
  absl::StatusOr<UniqueFd> Export() const;
  // The memory in this process's address space, until the destructor.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  VulkanMemory(std::shared_ptr<const VulkanDevice> device, void* memory,
               std::span<std::byte> bytes);
  // Success of the allocation takes `imported` over, unless it is nullptr.
  static absl::StatusOr<std::unique_ptr<VulkanMemory>> Make(
      std::shared_ptr<const VulkanDevice> device, const void* chain,
      uint64_t bytes, UniqueFd* imported);

  const std::shared_ptr<const VulkanDevice> device_;
  void* const memory_;  // a VkDeviceMemory
  const std::span<std::byte> bytes_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_GPU_VULKAN_MEMORY_H_
