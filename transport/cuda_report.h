// CudaReport: what this process finds of the CUDA driver.
//
// Data flow: libcuda.so.1 -> ReadCudaReport -> texts for a person.
//
//   absl::StatusOr<CudaReport> cuda = ReadCudaReport();
//   if (cuda.ok()) Show(cuda->version, cuda->devices);

#ifndef TANDEM_TRANSPORT_CUDA_REPORT_H_
#define TANDEM_TRANSPORT_CUDA_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

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

#endif  // TANDEM_TRANSPORT_CUDA_REPORT_H_
