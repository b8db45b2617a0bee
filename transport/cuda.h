// The CUDA driver, as programs see it: the types in the interfaces of arrays on
// a GPU, and CudaReport, what this process finds of the driver. Neither build
// nor run needs the CUDA toolkit.
//
// Data flow: a consumer's stream, as a number -> CudaStream -> the driver.
// libcuda.so.1 -> ReadCudaReport -> texts for a person.
// Ownership: values only.
//
//   arrays->WaitOn(CudaStreamOfNumber(stream));
//
//   absl::StatusOr<CudaReport> cuda = ReadCudaReport();
//   if (cuda.ok()) Show(cuda->version, cuda->devices);

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

// The driver's enums have the size of an int.
using CudaResult = int;
using CudaDevice = int;
using CudaPointer = unsigned long long;  // in the memory of a device
// Handles of the driver; nullptr is the current context's legacy stream.
using CudaContext = struct CudaContextOf*;
using CudaStream = struct CudaStreamOf*;
using CudaEvent = struct CudaEventOf*;
using CudaExternalMemory = struct CudaExternalMemoryOf*;

// Streams that are no handles: the two kinds of default stream.
inline CudaStream CudaStreamOfNumber(uintptr_t number) {
  return reinterpret_cast<CudaStream>(number);
}

struct CudaReport {
  struct Device {
    int ordinal;
    std::string name;
    std::string uuid;  // as nvidia-smi prints it
  };

  std::string library;          // its path
  std::string version;          // "12.2"
  std::vector<Device> devices;  // that this process sees
};

// Loads the driver. Errors:
//  - kGpuDriverMissing: TANDEM_CUDA=no, no library, or no device.
//  - kGpuDriverTooOld: older than CUDA 11.4.
//  - kGpuFailed: it cannot be initialised.
//  - kForkedChild: this process or a library in it has initialised CUDA before
//    the fork.
//  - kInvalidArgument: the variable TANDEM_CUDA.
absl::StatusOr<CudaReport> ReadCudaReport();

}  // namespace tandem
