#include "client_py/bindings/cuda_array.h"

#include <pybind11/stl.h>

#include <array>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/waiting.h"

namespace tandem {
namespace py = pybind11;
namespace {

// The structs of DLPack, version 0: facts of its binary interface.
struct DlDevice {
  int32_t type;
  int32_t id;
};
struct DlType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType type;
  int64_t* shape;
  int64_t* strides;  // nullptr: C order
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor* self);
};
static_assert(sizeof(DlTensor) == 48 && sizeof(DlManagedTensor) == 64);

constexpr int32_t kDlCuda = 2;
constexpr uint8_t kDlInt = 0;
constexpr uint8_t kDlUint = 1;
constexpr uint8_t kDlFloat = 2;
constexpr uint8_t kDlBool = 6;
constexpr char kUnused[] = "dltensor";  // the capsule's name until its use

// A type for DLPack and for the CUDA array interface, in the order of
// kFieldTypes.
struct ForeignType {
  uint8_t dl_code;
  char kind;
};
constexpr std::array<ForeignType, kFieldTypes.size()> kForeign = {
    {{kDlBool, 'b'},
     {kDlUint, 'u'},
     {kDlInt, 'i'},
     {kDlUint, 'u'},
     {kDlInt, 'i'},
     {kDlUint, 'u'},
     {kDlInt, 'i'},
     {kDlUint, 'u'},
     {kDlInt, 'i'},
     {kDlFloat, 'f'},
     {kDlFloat, 'f'},
     {kDlFloat, 'f'}}};

const ForeignType& ForeignOf(FieldType type) {
  return kForeign[static_cast<size_t>(type) - 1];
}

// What a consumer's tensor keeps.
struct Managed {
  DlManagedTensor tensor = {};
  std::vector<int64_t> shape;
  std::shared_ptr<const void> keeper;
};

void Delete(DlManagedTensor* self) {
  delete static_cast<Managed*>(self->context);
}

// A consumer renames the capsule, and then calls the deleter itself.
void DeleteUnused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kUnused) == 0) return;
  auto* const tensor =
      static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kUnused));
  tensor->deleter(tensor);
}

[[noreturn]] void RefuseBuffer(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw py::error_already_set();
}

}  // namespace

CudaArray::Place CudaArray::PlaceOf(const FieldRecord& record,
                                    uint32_t num_envs, CudaPointer pointer,
                                    int device) {
  std::vector<int64_t> shape = {num_envs};
  shape.insert(shape.end(), record.shape, record.shape + record.dims);
  return {.pointer = pointer,
          .type = record.type,
          .shape = std::move(shape),
          .device = device};
}

py::object CudaArray::Dlpack(const py::object& stream, const py::object& device,
                             const py::object& copy) const {
  if (!copy.is_none() && copy.cast<bool>()) {
    RefuseBuffer("copy: expected None or False, found True; copy the tensor");
  }
  if (!device.is_none() && !device.equal(DlpackDevice())) {
    RefuseBuffer(absl::StrCat("dl_device: expected (2, ", place_.device,
                              "), found another device; copy the tensor"));
  }
  WaitOn(stream.is_none() ? 1 : stream.cast<int64_t>());
  auto managed = std::make_unique<Managed>();
  managed->shape = place_.shape;
  managed->keeper = keeper_;
  managed->tensor = {
      .tensor = {.data = reinterpret_cast<void*>(place_.pointer),
                 .device = {.type = kDlCuda, .id = place_.device},
                 .ndim = static_cast<int32_t>(place_.shape.size()),
                 .type = {.code = ForeignOf(place_.type).dl_code,
                          .bits = static_cast<uint8_t>(
                              8 * ElementBytes(place_.type)),
                          .lanes = 1},
                 .shape = managed->shape.data(),
                 .strides = nullptr,
                 .byte_offset = 0},
      .context = managed.get(),
      .deleter = Delete};
  PyObject* const capsule =
      PyCapsule_New(&managed->tensor, kUnused, DeleteUnused);
  if (capsule == nullptr) throw py::error_already_set();
  managed.release();  // the capsule's
  return py::reinterpret_steal<py::object>(capsule);
}

void CudaArray::WaitOn(int64_t stream) const {
  prepare_(stream < 0 ? std::nullopt
                      : std::optional(CudaStreamOfNumber(
                            static_cast<uintptr_t>(stream))));
}

py::tuple CudaArray::DlpackDevice() const {
  return py::make_tuple(kDlCuda, place_.device);
}

py::dict CudaArray::Interface() const {
  prepare_(CudaStreamOfNumber(0));
  py::dict interface;
  interface["shape"] = Shape();
  const uint32_t bytes = ElementBytes(place_.type);
  interface["typestr"] =
      absl::StrCat(bytes == 1 ? "|" : "<",
                   std::string(1, ForeignOf(place_.type).kind), bytes);
  interface["data"] = py::make_tuple(place_.pointer, false);
  interface["strides"] = py::none();
  interface["stream"] = 1;
  interface["version"] = 3;
  return interface;
}

py::tuple CudaArray::Shape() const { return py::tuple(py::cast(place_.shape)); }

uint64_t CudaArray::Bytes() const {
  uint64_t bytes = ElementBytes(place_.type);
  for (const int64_t size : place_.shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

py::dict CudaDriverRow() {
  const absl::StatusOr<CudaReport> report =
      WithoutGil([] { return ReadCudaReport(); });
  if (!report.ok()) Raise(report.status(), "");
  py::list rows;
  for (const CudaReport::Device& device : report->devices) {
    rows.append(py::make_tuple(device.ordinal, device.name, device.uuid));
  }
  py::dict row;
  row["library"] = report->library;
  row["version"] = report->version;
  row["devices"] = rows;
  return row;
}

void DefineCudaArray(py::module_& module) {
  py::class_<CudaArray>(module, "CudaArray")
      .def(
          "__dlpack__",
          [](const CudaArray& array, const py::object& stream,
             const py::object& /*max_version*/, const py::object& device,
             const py::object& copy) {
            return array.Dlpack(stream, device, copy);
          },
          py::kw_only(), py::arg("stream") = py::none(),
          py::arg("max_version") = py::none(),
          py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack_device__", &CudaArray::DlpackDevice)
      .def("wait_on", &CudaArray::WaitOn, py::arg("stream"))
      .def_property_readonly("__cuda_array_interface__", &CudaArray::Interface)
      .def_property_readonly("shape", &CudaArray::Shape)
      .def_property_readonly("dtype", &CudaArray::Dtype)
      .def_property_readonly("device", &CudaArray::device)
      .def_property_readonly("pointer", &CudaArray::pointer)
      .def_property_readonly("nbytes", &CudaArray::Bytes)
      .def("__repr__", [](const CudaArray& array) {
        return absl::StrCat("<tandem CudaArray ", array.Dtype(),
                            std::string(py::str(array.Shape())), " on device ",
                            array.device(), ">");
      });
}

}  // namespace tandem
