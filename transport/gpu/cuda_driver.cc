#include "transport/gpu/cuda_driver.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/os/process_handle.h"
#include "base/os/shared_library.h"
#include "base/printable.h"
#include "transport/cuda.h"
#include "transport/memory/gpu_text.h"

namespace tandem {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

// The driver of this process, made by Load and never destroyed.
struct Loaded {
  Mutex mutex;
  const CudaDriver* driver ABSL_GUARDED_BY(mutex) = nullptr;
  // The process that called cuInit first; 0: none has.
  std::atomic<uint32_t> process{0};
};
Loaded& TheLoaded() {
  static Loaded* const loaded = new Loaded;
  return *loaded;
}

absl::Status InForkedChild() {
  return MakeError(ErrorCode::kForkedChild,
                   "CUDA: expected the process that initialised it, found a "
                   "forked child; start it by `spawn`, or fork before the "
                   "first use of the GPU");
}

}  // namespace

absl::StatusOr<CudaSetting> ReadCudaSetting() {
  const std::string word = EnvironmentVariable("TANDEM_CUDA");
  if (word == "no") return CudaSetting::kNo;
  if (word == "auto" || word.empty()) return CudaSetting::kAuto;
  if (word == "require") return CudaSetting::kRequire;
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("TANDEM_CUDA: expected no, auto or require, found '",
                   PrintableHead(word, 40), "'"));
}

absl::StatusOr<const CudaDriver*> CudaDriver::Load() {
  // Before the lock: another thread of the parent may have held it.
  if (CudaBelongsToParent()) return InForkedChild();
  TANDEM_ASSIGN_OR_RETURN(const CudaSetting setting, ReadCudaSetting());
  if (setting == CudaSetting::kNo) {
    return MakeError(ErrorCode::kGpuDriverMissing,
                     "the CUDA driver is switched off by TANDEM_CUDA=no; set "
                     "TANDEM_CUDA=auto");
  }
  Loaded& loaded = TheLoaded();
  MutexLock lock(&loaded.mutex);
  if (loaded.driver != nullptr) return loaded.driver;
  CudaDriver driver;
  TANDEM_RETURN_IF_ERROR(driver.Open());
  // relaxed: read by this process's threads, which the mutex orders, and by
  // forked children.
  loaded.process.store(ProcessId(), std::memory_order_relaxed);
  const CudaResult result = driver.functions_.Init(0);
  if (result != kCudaSuccess) {
    // relaxed: as above. A child of a process without CUDA may try again.
    loaded.process.store(0, std::memory_order_relaxed);
  }
  // Another library has initialised CUDA in the parent.
  if (result == kCudaNotInitialized) return InForkedChild();
  if (result == kCudaNoDevice || result == kCudaStubLibrary) {
    return MakeError(
        ErrorCode::kGpuDriverMissing,
        absl::StrCat("cuInit of ", driver.library_,
                     ": expected a GPU, found none (", driver.NameOf(result),
                     "); check nvidia-smi and, in a container, "
                     "--gpus all"));
  }
  TANDEM_RETURN_IF_ERROR(driver.Check(result, "cuInit"));
  loaded.driver = new CudaDriver(std::move(driver));
  return loaded.driver;
}

absl::Status CudaDriver::Open() {
  const std::string named = EnvironmentVariable("TANDEM_CUDA_LIBRARY");
  library_ = named.empty() ? kLibrary : std::string(named);
  std::string reason;
  void* const library = LoadSharedLibrary(library_, &reason);
  if (library == nullptr) {
    return MakeError(
        ErrorCode::kGpuDriverMissing,
        absl::StrCat("expected the CUDA driver, found none: ", reason,
                     "; install NVIDIA's driver, or use the CPU arrays"));
  }
  const char* missing = nullptr;
  const auto find = [&](const char* symbol, auto* function) {
    void* const address = FindSymbol(library, symbol);
    if (address == nullptr && missing == nullptr) missing = symbol;
    std::memcpy(function, &address, sizeof(address));
  };
#define TANDEM_CUDA_FIND(member, symbol, parameters) \
  find(#symbol, &functions_.member);
  TANDEM_CUDA_FUNCTIONS(TANDEM_CUDA_FIND)
#undef TANDEM_CUDA_FIND
  if (functions_.DriverGetVersion != nullptr) {
    (void)functions_.DriverGetVersion(&version_);
  }
  if (missing == nullptr && version_ >= kOldestVersion) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorCode::kGpuDriverTooOld,
      absl::StrCat("CUDA driver ", library_, ": expected version ",
                   CudaVersionText(kOldestVersion), " or newer, found ",
                   CudaVersionText(version_),
                   missing == nullptr
                       ? ""
                       : absl::StrCat(" without the function ", missing),
                   "; update NVIDIA's driver"));
}

std::string CudaDriver::NameOf(CudaResult result) const {
  const char* name = nullptr;
  if (functions_.GetErrorName(result, &name) != kCudaSuccess ||
      name == nullptr) {
    name = "CUDA error";
  }
  return absl::StrCat(name, " (", result, ")");
}

absl::Status CudaDriver::Check(CudaResult result,
                               absl::string_view call) const {
  if (result == kCudaSuccess) return absl::OkStatus();
  return MakeError(
      ErrorCode::kGpuFailed,
      absl::StrCat(call, ": expected success, found ", NameOf(result)));
}

absl::StatusOr<std::vector<CudaDriver::Device>> CudaDriver::Devices() const {
  int count = 0;
  TANDEM_RETURN_IF_ERROR(
      Check(functions_.DeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<Device> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDevice number = 0;
    Device device = {.ordinal = ordinal, .uuid = {}, .name = {}};
    char name[128] = {};
    TANDEM_RETURN_IF_ERROR(
        Check(functions_.DeviceGet(&number, ordinal), "cuDeviceGet"));
    TANDEM_RETURN_IF_ERROR(Check(functions_.DeviceGetUuid(&device.uuid, number),
                                 "cuDeviceGetUuid"));
    TANDEM_RETURN_IF_ERROR(
        Check(functions_.DeviceGetName(name, sizeof(name) - 1, number),
              "cuDeviceGetName"));
    device.name = Printable(name);
    devices.push_back(std::move(device));
  }
  return devices;
}

bool CudaBelongsToParent() {
  // relaxed: as in Load.
  const uint32_t process = TheLoaded().process.load(std::memory_order_relaxed);
  return process != 0 && process != ProcessId();
}

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

std::string UuidText(const CudaUuid& uuid) {
  return GpuUuidText(std::bit_cast<std::array<uint8_t, 16>>(uuid));
}

absl::StatusOr<std::shared_ptr<const PrimaryContext>> PrimaryContext::Retain(
    const CudaDriver& driver, CudaDriver::Device device) {
  CudaDevice number = 0;
  CudaContext handle = nullptr;
  TANDEM_RETURN_IF_ERROR(driver.Check(
      driver.functions().DeviceGet(&number, device.ordinal), "cuDeviceGet"));
  TANDEM_RETURN_IF_ERROR(
      driver.Check(driver.functions().PrimaryContextRetain(&handle, number),
                   "cuDevicePrimaryCtxRetain"));
  return std::shared_ptr<const PrimaryContext>(
      new PrimaryContext(&driver, std::move(device), number, handle));
}

absl::StatusOr<std::shared_ptr<const PrimaryContext>> PrimaryContext::Of(
    const CudaDriver& driver, int ordinal) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<CudaDriver::Device> devices,
                          driver.Devices());
  if (ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size()) {
    return Retain(driver, std::move(devices[static_cast<size_t>(ordinal)]));
  }
  return MakeError(
      ErrorCode::kGpuOtherDevice,
      absl::StrCat("CUDA device: expected a number below ", devices.size(),
                   ", found ", ordinal,
                   "; see nvidia-smi -L and CUDA_VISIBLE_DEVICES"));
}

absl::StatusOr<std::shared_ptr<const PrimaryContext>> PrimaryContext::Of(
    const CudaDriver& driver, const CudaUuid& uuid) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<CudaDriver::Device> devices,
                          driver.Devices());
  std::string seen;
  for (CudaDriver::Device& device : devices) {
    if (std::memcmp(device.uuid.bytes, uuid.bytes, sizeof(uuid.bytes)) == 0) {
      return Retain(driver, std::move(device));
    }
    absl::StrAppend(&seen, seen.empty() ? "" : ", ", UuidText(device.uuid));
  }
  return MakeError(
      ErrorCode::kGpuOtherDevice,
      absl::StrCat("the engine's arrays: expected a device that this process "
                   "sees (",
                   seen.empty() ? "none" : seen, "), found ", UuidText(uuid),
                   "; add it to CUDA_VISIBLE_DEVICES"));
}

PrimaryContext::~PrimaryContext() {
  if (!CudaBelongsToParent()) (void)cuda().PrimaryContextRelease(number_);
}

absl::Status PrimaryContext::CheckCaller() const {
  if (CudaBelongsToParent()) return InForkedChild();
  CudaContext current = nullptr;
  CudaDevice device = 0;
  if (cuda().ContextGetCurrent(&current) != kCudaSuccess ||
      current == nullptr || current == handle_ ||
      cuda().ContextGetDevice(&device) != kCudaSuccess || device != number_) {
    return absl::OkStatus();
  }
  return MakeError(ErrorCode::kGpuOtherContext,
                   absl::StrCat("CUDA device ", ordinal(),
                                ": expected its primary context, found another "
                                "one current in this thread; pop it, or use "
                                "the primary one as torch does"));
}

CurrentContext::CurrentContext(const PrimaryContext& context)
    : cuda_(context.cuda()),
      status_(context.driver().Check(cuda_.ContextPush(context.handle()),
                                     "cuCtxPushCurrent")) {}

CurrentContext::~CurrentContext() {
  CudaContext popped = nullptr;
  if (status_.ok()) (void)cuda_.ContextPop(&popped);
}

absl::StatusOr<CudaReport> ReadCudaReport() {
  TANDEM_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Load());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<CudaDriver::Device> devices,
                          driver->Devices());
  CudaReport report = {.library = driver->library(),
                       .version = CudaVersionText(driver->version()),
                       .devices = {}};
  for (const CudaDriver::Device& device : devices) {
    report.devices.push_back({.ordinal = device.ordinal,
                              .name = device.name,
                              .uuid = UuidText(device.uuid)});
  }
  return report;
}

}  // namespace tandem
