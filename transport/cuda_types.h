// Types of the CUDA driver in the interfaces of arrays on a GPU: neither build
// nor run needs the CUDA toolkit.
//
// Data flow: a consumer's stream, as a number -> CudaStream -> the driver.
// Ownership: types only.
//
//   arrays->WaitOn(CudaStreamOfNumber(stream));

#ifndef TANDEM_TRANSPORT_CUDA_TYPES_H_
#define TANDEM_TRANSPORT_CUDA_TYPES_H_

#include <cstdint>

namespace tandem {

// The driver's enums have the size of an int.
using CudaResult = int;
using CudaDevice = int;
using CudaPointer = unsigned long long;  // in the memory of a device
// Handles of the driver; nullptr is the current context's legacy stream.
using CudaContext = struct CudaContextOf*;
using CudaStream = struct CudaStreamOf*;
using CudaEvent = struct CudaEventOf*;

// Streams that are no handles: the two kinds of default stream.
inline CudaStream CudaStreamOfNumber(uintptr_t number) {
  return reinterpret_cast<CudaStream>(number);
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_CUDA_TYPES_H_
