#include "client_py/bindings/table_values.h"

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace tandem {
namespace py = pybind11;
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::Table;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;
using flatbuffers::voffset_t;

// Returns a table's field names as Python strings, made once.
const std::vector<PyObject*>& NamesOf(const TypeTable* table) {
  static auto* const all =
      new std::unordered_map<const TypeTable*, std::vector<PyObject*>>;
  std::vector<PyObject*>& names = (*all)[table];
  for (size_t i = names.size(); i < table->num_elems; ++i) {
    names.push_back(PyUnicode_InternFromString(table->names[i]));
  }
  return names;
}

template <typename T>
py::object Number(const uint8_t* at) {
  return py::cast(at == nullptr ? T{} : flatbuffers::ReadScalar<T>(at));
}

py::object Text(const uint8_t* at) {
  if (at == nullptr) return py::str();
  const auto* const text = reinterpret_cast<const flatbuffers::String*>(
      at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at));
  // The engine's bytes may be invalid UTF-8.
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text->c_str(), static_cast<Py_ssize_t>(text->size()),
                           "backslashreplace"));
}

template <typename T>
py::object Array(const flatbuffers::Vector<T>* numbers) {
  py::array_t<T> array(
      static_cast<py::ssize_t>(numbers == nullptr ? 0 : numbers->size()));
  if (array.size() > 0) {
    std::memcpy(array.mutable_data(), numbers->Data(),
                static_cast<size_t>(array.nbytes()));
  }
  return array;
}

py::object Floats(const uint8_t* at, size_t count) {
  py::array_t<float> array(static_cast<py::ssize_t>(count));
  std::memcpy(array.mutable_data(), at, count * sizeof(float));
  return array;
}

py::object Value(const uint8_t* at, ElementaryType type, const TypeTable* ref) {
  if (type == flatbuffers::ET_BOOL) {
    return py::bool_(at != nullptr && *at != 0);
  }
  py::object number;
  if (WithNumberType(type, [&]<typename T>(T) { number = Number<T>(at); })) {
    return number;
  }
  if (type == flatbuffers::ET_STRING) return Text(at);
  if (at == nullptr) return py::none();
  if (ref->st == flatbuffers::ST_STRUCT) return Floats(at, ref->num_elems);
  return TableValues(
      reinterpret_cast<const Table*>(
          at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at)),
      ref);
}

py::object VectorValue(const uint8_t* at, ElementaryType type,
                       const TypeTable* ref) {
  const uint8_t* const start =
      at == nullptr ? nullptr
                    : at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
  py::object numbers;
  if (WithNumberType(type, [&]<typename T>(T) {
        numbers = Array(reinterpret_cast<const flatbuffers::Vector<T>*>(start));
      })) {
    return numbers;
  }
  py::list list;
  if (start == nullptr) return list;
  const auto* const elements =
      reinterpret_cast<const flatbuffers::Vector<uint8_t>*>(start);
  const size_t size = flatbuffers::InlineSize(type, ref);
  for (size_t i = 0; i < elements->size(); ++i) {
    list.append(Value(elements->Data() + i * size, type, ref));
  }
  return list;
}

}  // namespace

py::dict TableValues(const Table* table, const TypeTable* type) {
  const std::vector<PyObject*>& names = NamesOf(type);
  py::dict values;
  for (size_t i = 0; i < type->num_elems; ++i) {
    const TypeCode code = type->type_codes[i];
    const auto field =
        flatbuffers::FieldIndexToOffset(static_cast<voffset_t>(i));
    const uint8_t* const at = table->GetAddressOf(field);
    const auto element = static_cast<ElementaryType>(code.base_type);
    const TypeTable* const ref = RefOf(type, code);
    const py::object value = code.is_repeating != 0
                                 ? VectorValue(at, element, ref)
                                 : Value(at, element, ref);
    if (PyDict_SetItem(values.ptr(), names[i], value.ptr()) != 0) {
      throw py::error_already_set();
    }
  }
  return values;
}

}  // namespace tandem
