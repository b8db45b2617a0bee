// New arrays, and access to the bytes of arrays and scalars of NumPy, without
// pybind11's checks: for code that runs in each step.
//
// Data flow: NumPy's C interface, as pybind11 has it -> typed pointers.
// Ownership: descriptors and types live as long as the process. All calls need
// the GIL.
//
//   PyObject* rewards = NewArray(Descriptor<double>(), {num_envs});
//   Data<double>(rewards)[0] = 1;

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <array>
#include <optional>
#include <span>

#include "schema/layout/field.h"

namespace tandem {

using NumpyApi = pybind11::detail::npy_api;

// A type of field.h in NumPy.
struct NumpyType {
  PyObject* descriptor;  // of the native byte order
  PyTypeObject* scalar;  // numpy.int64, ...
  int number;            // NumPy's type number
};

// NumPy's descriptor of a native type. A process has one for each type.
template <typename T>
PyObject* Descriptor() {
  static PyObject* const descriptor =
      NumpyApi::get().PyArray_DescrFromType_(pybind11::dtype::num_of<T>());
  return descriptor;
}

// In the order of kFieldTypes.
const std::array<NumpyType, kFieldTypes.size()>& NumpyTypes();

// `type` is known.
inline const NumpyType& NumpyTypeOf(FieldType type) {
  return NumpyTypes()[static_cast<size_t>(type) - 1];
}

// Returns the type that a scalar's type is; nullopt for any other type.
std::optional<FieldType> TypeOfScalar(const PyTypeObject* type);

// Returns the type of an array's elements; nullopt for another type or byte
// order.
std::optional<FieldType> TypeOfElements(PyObject* array);

// The array must be one of NumPy, or of a subclass.
inline pybind11::detail::PyArray_Proxy* Proxy(PyObject* array) {
  return pybind11::detail::array_proxy(array);
}

inline bool IsExactArray(PyObject* object) {
  return Py_TYPE(object) == NumpyApi::get().PyArray_Type_;
}

// Whether an array is aligned, in C order, of this type and shape.
bool IsPlain(PyObject* array, int type_number,
             std::span<const pybind11::ssize_t> shape);

// Whether an array is aligned and in C order.
inline bool IsContiguous(PyObject* array) {
  constexpr int kFlags =
      NumpyApi::NPY_ARRAY_C_CONTIGUOUS_ | NumpyApi::NPY_ARRAY_ALIGNED_;
  return (Proxy(array)->flags & kFlags) == kFlags;
}

// Whether NumPy lets its array be written.
inline bool IsWritable(PyObject* array) {
  return (Proxy(array)->flags & NumpyApi::NPY_ARRAY_WRITEABLE_) != 0;
}

template <typename T>
T* Data(PyObject* array) {
  return reinterpret_cast<T*>(Proxy(array)->data);
}

// The value of a scalar of one of NumpyTypes: after the object's head.
inline const char* ScalarBytes(const PyObject* scalar) {
  return reinterpret_cast<const char*>(scalar) + sizeof(PyObject);
}

// Takes a new reference. Throws the pending Python error for nullptr.
inline pybind11::object Owned(PyObject* reference) {
  if (reference == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(reference);
}

// Returns a new array in C order, whose elements are not set; of objects: None.
// Raises MemoryError.
PyObject* NewArray(PyObject* descriptor,
                   std::span<const pybind11::ssize_t> shape);

template <size_t N>
PyObject* NewArray(PyObject* descriptor, const pybind11::ssize_t (&shape)[N]) {
  return NewArray(descriptor, std::span<const pybind11::ssize_t>(shape));
}

}  // namespace tandem
