// CudaArray: an array in the memory of a GPU for Python, by the two protocols
// that torch, JAX, CuPy and Warp read: DLPack and the CUDA array interface.
//
// Data flow: an address of ExportedArrays, ImportedArrays or DeviceCopies ->
// CudaArray -> __dlpack__ -> a tensor of the consumer, without a copy.
// Ownership: Python owns it. It and each tensor keep the memory's owner. All
// calls need the GIL; the end of a tensor does not.

#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schema/layout/field.h"
#include "transport/cuda.h"

namespace tandem {

class CudaArray {
 public:
  struct Place {
    CudaPointer pointer = 0;
    FieldType type = FieldType::kFloat32;
    std::vector<int64_t> shape = {};
    int device = 0;
  };
  // Called before each export with the stream of the consumer; nullopt: it
  // wants no order. Raises if the array is not valid now.
  using Prepare = std::function<void(std::optional<CudaStream> stream)>;

  CudaArray(Place place, std::shared_ptr<const void> keeper, Prepare prepare)
      : place_(std::move(place)),
        keeper_(std::move(keeper)),
        prepare_(std::move(prepare)) {}

  // [num_envs, *shape of the record]
  static Place PlaceOf(const FieldRecord& record, uint32_t num_envs,
                       CudaPointer pointer, int device);

  // DLPack's protocol, of the array API. `stream`: the consumer's; None and 1:
  // the legacy default stream; 2: the default stream of the thread; -1: no
  // order. Raises BufferError for a copy or another device.
  pybind11::object Dlpack(const pybind11::object& stream,
                          const pybind11::object& device,
                          const pybind11::object& copy) const;
  // Makes later work on this stream wait, as an export does, for a tensor that
  // an earlier export of the same memory has given.
  void WaitOn(int64_t stream) const;
  pybind11::tuple DlpackDevice() const;
  // Version 3, ordered after the legacy default stream.
  pybind11::dict Interface() const;

  pybind11::tuple Shape() const;
  std::string Dtype() const { return NameOf(place_.type); }
  int device() const { return place_.device; }
  uint64_t pointer() const { return place_.pointer; }
  uint64_t Bytes() const;

 private:
  Place place_;
  std::shared_ptr<const void> keeper_;
  Prepare prepare_;
};

// Returns the process's driver: "library", "version" as text, and "devices", of
// which each is (number, name, UUID). Raises the errors of ReadCudaReport.
pybind11::dict CudaDriverRow();

// Adds the class to a module.
void DefineCudaArray(pybind11::module_& module);

}  // namespace tandem
