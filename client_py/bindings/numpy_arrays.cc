#include "client_py/bindings/numpy_arrays.h"

#include <pybind11/gil_safe_call_once.h>

namespace tandem {
namespace py = pybind11;
namespace {

std::array<NumpyType, kFieldTypes.size()> MakeTypes() {
  std::array<NumpyType, kFieldTypes.size()> types{};
  for (size_t i = 0; i < types.size(); ++i) {
    py::dtype type(kFieldTypes[i].name);
    py::object scalar = type.attr("type");
    const int number = type.num();
    // Both are kept as long as the process.
    types[i] = {
        .descriptor = type.release().ptr(),
        .scalar = reinterpret_cast<PyTypeObject*>(scalar.release().ptr()),
        .number = number};
  }
  return types;
}

bool IsNativeOrder(PyObject* descriptor) {
  return py::detail::array_descriptor_proxy(descriptor)->byteorder != '>';
}

int NumberOf(PyObject* descriptor) {
  return py::detail::array_descriptor_proxy(descriptor)->type_num;
}

}  // namespace

const std::array<NumpyType, kFieldTypes.size()>& NumpyTypes() {
  // Not a static of the function: MakeTypes may let another thread run, which
  // would wait for the static with the GIL held.
  using Types = std::array<NumpyType, kFieldTypes.size()>;
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<Types> types;
  return types.call_once_and_store_result(MakeTypes).get_stored();
}

std::optional<FieldType> TypeOfScalar(const PyTypeObject* type) {
  const auto& types = NumpyTypes();
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].scalar == type) return static_cast<FieldType>(i + 1);
  }
  return std::nullopt;
}

std::optional<FieldType> TypeOfElements(PyObject* array) {
  const auto& types = NumpyTypes();
  PyObject* const descriptor = Proxy(array)->descr;
  const int number = NumberOf(descriptor);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].number == number && IsNativeOrder(descriptor)) {
      return static_cast<FieldType>(i + 1);
    }
  }
  return std::nullopt;
}

bool IsPlain(PyObject* array, int type_number,
             std::span<const py::ssize_t> shape) {
  const auto* const proxy = Proxy(array);
  return IsContiguous(array) && NumberOf(proxy->descr) == type_number &&
         IsNativeOrder(proxy->descr) &&
         proxy->nd == static_cast<int>(shape.size()) &&
         std::equal(shape.begin(), shape.end(), proxy->dimensions);
}

PyObject* NewArray(PyObject* descriptor, std::span<const py::ssize_t> shape) {
  Py_INCREF(descriptor);  // PyArray_NewFromDescr_ takes this reference
  PyObject* const array = NumpyApi::get().PyArray_NewFromDescr_(
      NumpyApi::get().PyArray_Type_, descriptor, static_cast<int>(shape.size()),
      shape.data(), nullptr, nullptr, 0, nullptr);
  if (array == nullptr) throw py::error_already_set();
  return array;
}

}  // namespace tandem
