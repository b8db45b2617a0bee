// CudaDriver: the CUDA driver, loaded by dlopen. PrimaryContext: a device's
// primary context, which torch, JAX, CuPy and Warp use, too.
//
// Data flow: TANDEM_CUDA, TANDEM_CUDA_LIBRARY -> dlopen -> CudaFunctions -> the
// calls of this folder.
// Ownership: a process loads the driver once and never unloads it. Any thread
// may call. A forked child cannot use what its parent has made.
//
//   TANDEM_ASSIGN_OR_RETURN(const CudaDriver* cuda, CudaDriver::Load());
//   TANDEM_ASSIGN_OR_RETURN(auto context, PrimaryContext::Of(*cuda, 0));
//   const CurrentContext current(*context);
//   TANDEM_RETURN_IF_ERROR(cuda->Check(
//       cuda->functions().MemAlloc(&pointer, bytes), "cuMemAlloc"));

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/gpu/cuda_prototypes.h"

namespace tandem {

// The setting TANDEM_CUDA.
enum class CudaSetting : uint8_t {
  kNo,       // the driver is not loaded
  kAuto,     // an engine without the driver fills the CPU arrays only
  kRequire,  // an engine without the driver fails
};
// kInvalidArgument: another word than no, auto or require.
absl::StatusOr<CudaSetting> ReadCudaSetting();

class CudaDriver {
 public:
  // The oldest driver that has every function: of CUDA 11.4.
  static constexpr int kOldestVersion = 11'040;

  // Returns the process's driver; the first call loads and initialises it. An
  // error is not kept: the next call tries again. Errors:
  //  - kGpuDriverMissing: TANDEM_CUDA=no, no library, or no device.
  //  - kGpuDriverTooOld: its version, or a function is missing.
  //  - kGpuFailed: it cannot be initialised.
  //  - kForkedChild: this process or a library in it has initialised CUDA
  //    before the fork.
  //  - kInvalidArgument: TANDEM_CUDA.
  static absl::StatusOr<const CudaDriver*> Load();

  const CudaFunctions& functions() const { return functions_; }
  int version() const { return version_; }  // 1000 * major + 10 * minor
  const std::string& library() const { return library_; }

  // Returns OK for kCudaSuccess; else kGpuFailed with the call and the name of
  // the driver's error.
  absl::Status Check(CudaResult result, absl::string_view call) const;
  // "CUDA_ERROR_OUT_OF_MEMORY (2)"
  std::string NameOf(CudaResult result) const;

  struct Device {
    int ordinal;
    CudaUuid uuid;
    std::string name;
  };
  // The devices that this process sees (CUDA_VISIBLE_DEVICES). kGpuFailed.
  absl::StatusOr<std::vector<Device>> Devices() const;

 private:
  CudaDriver() = default;
  absl::Status Open();

  std::string library_;
  CudaFunctions functions_;
  int version_ = 0;
};

// Whether this process is a forked child of the one that loaded the driver.
bool CudaBelongsToParent();

// "12.2"
std::string CudaVersionText(int version);

// "GPU-41424344-4546-4748-494a-4b4c4d4e4f50", as nvidia-smi prints it.
std::string UuidText(const CudaUuid& uuid);

// Retains a primary context until the destructor, which does nothing in a
// forked child.
class PrimaryContext {
 public:
  // kGpuOtherDevice: no such device; kGpuFailed.
  static absl::StatusOr<std::shared_ptr<const PrimaryContext>> Of(
      const CudaDriver& driver, int ordinal);
  static absl::StatusOr<std::shared_ptr<const PrimaryContext>> Of(
      const CudaDriver& driver, const CudaUuid& uuid);
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  ~PrimaryContext();

  const CudaDriver& driver() const { return *driver_; }
  const CudaFunctions& cuda() const { return driver_->functions(); }
  int ordinal() const { return device_.ordinal; }
  const CudaUuid& uuid() const { return device_.uuid; }
  const std::string& name() const { return device_.name; }
  CudaContext handle() const { return handle_; }

  // kGpuOtherContext: another context of the same device is current in the
  // calling thread, which therefore cannot use this one's memory. kForkedChild.
  absl::Status CheckCaller() const;

 private:
  PrimaryContext(const CudaDriver* driver, CudaDriver::Device device,
                 CudaDevice number, CudaContext handle)
      : driver_(driver),
        device_(std::move(device)),
        number_(number),
        handle_(handle) {}
  static absl::StatusOr<std::shared_ptr<const PrimaryContext>> Retain(
      const CudaDriver& driver, CudaDriver::Device device);

  const CudaDriver* const driver_;
  const CudaDriver::Device device_;
  const CudaDevice number_;
  const CudaContext handle_;
};

// Makes a context current in this thread until the destructor.
class CurrentContext {
 public:
  explicit CurrentContext(const PrimaryContext& context);
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

  const absl::Status& status() const { return status_; }

 private:
  const CudaFunctions& cuda_;
  absl::Status status_;
};

}  // namespace tandem
