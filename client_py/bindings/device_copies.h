// DeviceCopies: the Python interface of RegionCopies.
//
// Data flow: NumPy views of a client's region -> RegionCopies -> CudaArrays;
// actions of the device -> the region.
// Ownership: tandem.torch.device holds one. The client waits for copies before
// each send. All calls need the GIL; calls that wait release it. Calls are
// calls of the client: in one thread at a time.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "client_py/bindings/cuda_array.h"
#include "client_py/bindings/native_client.h"
#include "transport/region_copies.h"

namespace tandem {

class DeviceCopies {
 public:
  // Raises the errors of RegionCopies::Make; InvalidArgument for another array
  // than a view of the client's region.
  DeviceCopies(NativeClient* client, int device, const pybind11::list& views,
               bool overlaps);

  // Begins to copy all views. Any thread may export the arrays. An array raises
  // InvalidArgument when its buffer has been overwritten, by the second Begin
  // after it. Raises the errors of NativeClient::Send.
  pybind11::list Begin();
  // Copies float32[num_envs * act_size] from the device into the client's
  // actions, after the work on the stream with this number.
  void TakeActions(uint64_t pointer, uint64_t bytes, uintptr_t stream);

 private:
  NativeClient* client_;
  std::vector<CudaArray::Place> places_;  // without pointers
  std::shared_ptr<RegionCopies> copies_;
};

}  // namespace tandem
