#include "transport/gpu/vulkan_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"

namespace tandem {
namespace {

constexpr char kLibrary[] = "libvulkan.so.1";
constexpr VkExternalMemoryHandleTypeFlagBits kOpaqueFd =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr VkMemoryPropertyFlags kMappable =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

absl::Status Check(VkResult result, absl::string_view call) {
  if (result == VK_SUCCESS) return absl::OkStatus();
  return MakeError(ErrorCode::kGpuFailed,
                   absl::StrCat(call, ": expected VK_SUCCESS, found ",
                                static_cast<int>(result)));
}

}  // namespace

// The functions of Vulkan that are used, by the level that owns them.
#define TANDEM_VULKAN_INSTANCE(ROW)                \
  ROW(vkDestroyInstance)                           \
  ROW(vkEnumeratePhysicalDevices)                  \
  ROW(vkGetPhysicalDeviceProperties2)              \
  ROW(vkGetPhysicalDeviceMemoryProperties)         \
  ROW(vkGetPhysicalDeviceExternalBufferProperties) \
  ROW(vkCreateDevice)                              \
  ROW(vkGetDeviceProcAddr)
#define TANDEM_VULKAN_DEVICE(ROW) \
  ROW(vkDestroyDevice)            \
  ROW(vkAllocateMemory)           \
  ROW(vkFreeMemory)               \
  ROW(vkMapMemory)                \
  ROW(vkGetMemoryFdKHR)

struct VulkanDevice::Handles {
  VkInstance instance = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  uint32_t memory_type = 0;
  Uuid uuid = {};
  std::string name;
#define TANDEM_VULKAN_MEMBER(function) PFN_##function function = nullptr;
  TANDEM_VULKAN_INSTANCE(TANDEM_VULKAN_MEMBER)
  TANDEM_VULKAN_DEVICE(TANDEM_VULKAN_MEMBER)
#undef TANDEM_VULKAN_MEMBER

  ~Handles() {
    if (device != VK_NULL_HANDLE) vkDestroyDevice(device, nullptr);
    if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
  }

  absl::Status OpenInstance() {
    // Never closed: drivers start threads.
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    auto* const find = library == nullptr
                           ? nullptr
                           : reinterpret_cast<PFN_vkGetInstanceProcAddr>(
                                 dlsym(library, "vkGetInstanceProcAddr"));
    if (find == nullptr) {
      return MakeError(ErrorCode::kGpuDriverMissing,
                       absl::StrCat("expected the Vulkan loader, found no ",
                                    kLibrary, "; install libvulkan1"));
    }
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(
        find(VK_NULL_HANDLE, "vkCreateInstance"));
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    const VkResult result = create(&info, nullptr, &instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
      return MakeError(ErrorCode::kGpuDriverMissing,
                       "vkCreateInstance: expected a Vulkan driver, found "
                       "none; install one, such as mesa-vulkan-drivers");
    }
    TANDEM_RETURN_IF_ERROR(Check(result, "vkCreateInstance"));
#define TANDEM_VULKAN_FIND(function) \
  function = reinterpret_cast<PFN_##function>(find(instance, #function));
    TANDEM_VULKAN_INSTANCE(TANDEM_VULKAN_FIND)
#undef TANDEM_VULKAN_FIND
    return absl::OkStatus();
  }

  bool SharesMemory(VkPhysicalDevice physical) const {
    VkPhysicalDeviceExternalBufferInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    info.handleType = kOpaqueFd;
    VkExternalBufferProperties found = {};
    found.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
    vkGetPhysicalDeviceExternalBufferProperties(physical, &info, &found);
    constexpr VkExternalMemoryFeatureFlags kBoth =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT |
        VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    return (found.externalMemoryProperties.externalMemoryFeatures & kBoth) ==
           kBoth;
  }

  absl::Status OpenDevice(VkPhysicalDevice physical) {
    VkPhysicalDeviceMemoryProperties memory = {};
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    while (memory_type < memory.memoryTypeCount &&
           (memory.memoryTypes[memory_type].propertyFlags & kMappable) !=
               kMappable) {
      ++memory_type;
    }
    if (memory_type == memory.memoryTypeCount) {
      return MakeError(ErrorCode::kUnsupported,
                       absl::StrCat("Vulkan device ", name,
                                    ": expected memory that can be mapped, "
                                    "found none"));
    }
    const float priority = 1;
    VkDeviceQueueCreateInfo queue = {};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    const char* const extension = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
    TANDEM_RETURN_IF_ERROR(Check(
        vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice"));
#define TANDEM_VULKAN_FIND(function)           \
  function = reinterpret_cast<PFN_##function>( \
      vkGetDeviceProcAddr(device, #function));
    TANDEM_VULKAN_DEVICE(TANDEM_VULKAN_FIND)
#undef TANDEM_VULKAN_FIND
    return absl::OkStatus();
  }
};

VulkanDevice::VulkanDevice(std::unique_ptr<Handles> handles)
    : handles_(std::move(handles)) {}

VulkanDevice::~VulkanDevice() = default;

const VulkanDevice::Uuid& VulkanDevice::uuid() const { return handles_->uuid; }

const std::string& VulkanDevice::name() const { return handles_->name; }

absl::StatusOr<std::shared_ptr<const VulkanDevice>> VulkanDevice::Open(
    const std::optional<Uuid>& uuid) {
  auto handles = std::make_unique<Handles>();
  TANDEM_RETURN_IF_ERROR(handles->OpenInstance());
  uint32_t count = 0;
  TANDEM_RETURN_IF_ERROR(Check(
      handles->vkEnumeratePhysicalDevices(handles->instance, &count, nullptr),
      "vkEnumeratePhysicalDevices"));
  std::vector<VkPhysicalDevice> devices(count);
  TANDEM_RETURN_IF_ERROR(Check(handles->vkEnumeratePhysicalDevices(
                                   handles->instance, &count, devices.data()),
                               "vkEnumeratePhysicalDevices"));
  if (count == 0) {
    return MakeError(ErrorCode::kGpuDriverMissing,
                     "Vulkan: expected a device, found none");
  }
  bool found = false;
  for (const VkPhysicalDevice physical : devices) {
    VkPhysicalDeviceIDProperties id = {};
    id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &id;
    handles->vkGetPhysicalDeviceProperties2(physical, &properties);
    std::memcpy(handles->uuid.data(), id.deviceUUID, sizeof(id.deviceUUID));
    if (uuid && *uuid != handles->uuid) continue;
    found = true;
    if (!handles->SharesMemory(physical)) continue;
    handles->name = Printable(properties.properties.deviceName);
    TANDEM_RETURN_IF_ERROR(handles->OpenDevice(physical));
    return std::shared_ptr<const VulkanDevice>(
        new VulkanDevice(std::move(handles)));
  }
  if (!found) {
    return MakeError(
        ErrorCode::kGpuOtherDevice,
        absl::StrCat("Vulkan: expected the engine's device, found ", count,
                     " others"));
  }
  return MakeError(ErrorCode::kUnsupported,
                   "Vulkan: expected a device that exports and imports memory "
                   "by opaque file descriptors, found none");
}

absl::StatusOr<std::unique_ptr<VulkanMemory>> VulkanMemory::Make(
    std::shared_ptr<const VulkanDevice> device, const void* chain,
    uint64_t bytes, UniqueFd* imported) {
  const VulkanDevice::Handles& vulkan = *device->handles_;
  VkMemoryAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = chain;
  info.allocationSize = bytes;
  info.memoryTypeIndex = vulkan.memory_type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  const VkResult result =
      vulkan.vkAllocateMemory(vulkan.device, &info, nullptr, &memory);
  if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE) {
    return MakeError(ErrorCode::kGpuStaleHandle,
                     "vkAllocateMemory: expected the engine's memory, found "
                     "VK_ERROR_INVALID_EXTERNAL_HANDLE");
  }
  TANDEM_RETURN_IF_ERROR(Check(result, "vkAllocateMemory"));
  if (imported != nullptr) (void)imported->release();  // the driver's now
  void* base = nullptr;
  const VkResult mapped =
      vulkan.vkMapMemory(vulkan.device, memory, 0, bytes, 0, &base);
  if (mapped != VK_SUCCESS) {
    vulkan.vkFreeMemory(vulkan.device, memory, nullptr);
    return Check(mapped, "vkMapMemory");
  }
  return std::unique_ptr<VulkanMemory>(new VulkanMemory(
      std::move(device), static_cast<void*>(memory),
      {static_cast<std::byte*>(base), static_cast<size_t>(bytes)}));
}

absl::StatusOr<std::unique_ptr<VulkanMemory>> VulkanMemory::Allocate(
    std::shared_ptr<const VulkanDevice> device, uint64_t bytes) {
  VkExportMemoryAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  info.handleTypes = kOpaqueFd;
  return Make(std::move(device), &info, bytes, nullptr);
}

absl::StatusOr<std::unique_ptr<VulkanMemory>> VulkanMemory::Import(
    std::shared_ptr<const VulkanDevice> device, UniqueFd fd, uint64_t bytes) {
  VkImportMemoryFdInfoKHR info = {};
  info.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  info.handleType = kOpaqueFd;
  info.fd = fd.get();
  return Make(std::move(device), &info, bytes, &fd);
}

VulkanMemory::VulkanMemory(std::shared_ptr<const VulkanDevice> device,
                           void* memory, std::span<std::byte> bytes)
    : device_(std::move(device)), memory_(memory), bytes_(bytes) {}

VulkanMemory::~VulkanMemory() {
  const VulkanDevice::Handles& vulkan = *device_->handles_;
  vulkan.vkFreeMemory(vulkan.device, static_cast<VkDeviceMemory>(memory_),
                      nullptr);
}

absl::StatusOr<UniqueFd> VulkanMemory::Export() const {
  const VulkanDevice::Handles& vulkan = *device_->handles_;
  VkMemoryGetFdInfoKHR info = {};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  info.memory = static_cast<VkDeviceMemory>(memory_);
  info.handleType = kOpaqueFd;
  int fd = -1;
  TANDEM_RETURN_IF_ERROR(Check(
      vulkan.vkGetMemoryFdKHR(vulkan.device, &info, &fd), "vkGetMemoryFdKHR"));
  return UniqueFd(fd);
}

}  // namespace tandem
