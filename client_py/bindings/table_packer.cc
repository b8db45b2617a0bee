// PackTable: a Python dict to a FlatBuffers table.
#include <pybind11/numpy.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/table_values.h"
#include "transport/envelope.h"

namespace tandem {
namespace py = pybind11;
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;
using flatbuffers::voffset_t;

// The path of a value in a request, for messages.
struct Place {
  const Place* in;
  absl::string_view name;
  py::ssize_t index = -1;  // the element's index; -1: the field itself

  std::string Text() const {
    std::string text(name);
    if (in != nullptr) text = absl::StrCat(in->Text(), ".", name);
    if (index >= 0) absl::StrAppend(&text, "[", index, "]");
    return text;
  }
};

// Packs one request.
class Packer {
 public:
  Packer(FlatBufferBuilder* builder, absl::string_view region)
      : builder_(*builder), region_(region) {}

  flatbuffers::Offset<void> PackTable(py::handle fields, const TypeTable* type,
                                      const Place& place);

 private:
  // Adds a field to the open table. FlatBuffers needs texts, vectors and tables
  // before the table that contains them, so all fields are read before it is
  // opened.
  using AddField = absl::AnyInvocable<void()>;

  [[noreturn]] void Refuse(const Place& place, absl::string_view expected,
                           py::handle found) const {
    PyErr_Clear();  // the error of the conversion
    std::string text;
    PyObject* const repr = PyObject_Repr(found.ptr());
    if (repr == nullptr) {
      PyErr_Clear();
    } else {
      text =
          py::str(py::reinterpret_steal<py::object>(repr)).cast<std::string>();
    }
    constexpr size_t kMost = 60;
    if (text.size() > kMost || text.empty()) {
      text = py::str(py::type::handle_of(found).attr("__name__"));
    }
    RaiseInvalid(absl::StrCat(place.Text(), ": expected ", expected, ", found ",
                              text, "; nothing was sent"),
                 region_);
  }

  void MakeRoomFor(size_t bytes, const Place& place) const {
    const absl::Status room = CheckEnvelopeBytes(
        uint64_t{builder_.GetSize()} + bytes,
        absl::StrCat(place.Text(), ": the request"), "nothing was sent");
    if (!room.ok()) Raise(room, region_);
  }

  template <typename T>
  T Integer(py::handle value, const TypeTable* ref, const Place& place) const;
  template <typename T>
  T Real(py::handle value, const Place& place) const;
  py::array RealArray(py::handle value, absl::string_view expected,
                      const Place& place) const;
  template <typename T>
  uint32_t IntegerVector(py::handle value, const TypeTable* ref,
                         const Place& place);
  template <typename T>
  uint32_t RealVector(py::handle value, const Place& place);
  uint32_t PackText(py::handle value, const Place& place);
  uint32_t PackVector(py::handle value, ElementaryType type,
                      const TypeTable* ref, const Place& place);
  AddField PackValue(py::handle value, ElementaryType type,
                     const TypeTable* ref, const Place& place, voffset_t field);
  template <typename T>
  AddField Number(voffset_t field, T number) {
    return [this, field, number] { builder_.AddElement(field, number); };
  }
  AddField Offset(voffset_t field, uint32_t offset) {
    return [this, field, offset] {
      builder_.AddOffset(field, flatbuffers::Offset<void>(offset));
    };
  }

  FlatBufferBuilder& builder_;
  absl::string_view region_;
};

template <typename T>
T Packer::Integer(py::handle value, const TypeTable* ref,
                  const Place& place) const {
  const auto number =
      py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  bool fits = false;
  T result = 0;
  if (number) {
    if constexpr (std::is_signed_v<T>) {
      int overflow = 0;
      const long long wide =
          PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
      fits = overflow == 0 && wide >= std::numeric_limits<T>::min() &&
             wide <= std::numeric_limits<T>::max();
      result = static_cast<T>(wide);
    } else {
      const unsigned long long wide = PyLong_AsUnsignedLongLong(number.ptr());
      fits =
          PyErr_Occurred() == nullptr && wide <= std::numeric_limits<T>::max();
      result = static_cast<T>(wide);
    }
  }
  if (!fits) {
    Refuse(
        place,
        absl::StrCat("an integer in ", int64_t{std::numeric_limits<T>::min()},
                     " .. ", uint64_t{std::numeric_limits<T>::max()}),
        value);
  }
  if (ref != nullptr && flatbuffers::EnumName(result, ref) == nullptr) {
    std::string names;
    for (size_t i = 0; i < ref->num_elems; ++i) {
      absl::StrAppend(
          &names, i == 0 ? "one of " : ", ", ref->names[i], " (",
          ref->values != nullptr ? ref->values[i] : static_cast<int64_t>(i),
          ")");
    }
    Refuse(place, names, value);
  }
  return result;
}

template <typename T>
T Packer::Real(py::handle value, const Place& place) const {
  const double wide = PyFloat_AsDouble(value.ptr());
  const bool is_number = wide != -1 || PyErr_Occurred() == nullptr;
  if (!is_number) Refuse(place, "a number", value);
  const T result = static_cast<T>(wide);
  if (std::isinf(result) && !std::isinf(wide)) {
    Refuse(place, "a number in float32's range", value);
  }
  return result;
}

// Returns a C-contiguous array of numbers of any dtype, with one dimension.
py::array Packer::RealArray(py::handle value, absl::string_view expected,
                            const Place& place) const {
  py::array array = py::array::ensure(value);
  const char kind = array ? array.dtype().kind() : '?';
  if (!array || array.ndim() != 1 ||
      (array.size() > 0 && kind != 'f' && kind != 'i' && kind != 'u')) {
    Refuse(place, expected, value);
  }
  return array;
}

template <typename T>
uint32_t Packer::RealVector(py::handle value, const Place& place) {
  const py::array given = RealArray(value, "numbers in one dimension", place);
  MakeRoomFor(static_cast<size_t>(given.size()) * sizeof(T), place);
  const auto array =
      py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(given);
  if (!array) Refuse(place, "numbers in one dimension", value);
  return builder_.CreateVector(array.data(), static_cast<size_t>(array.size()))
      .o;
}

template <typename T>
uint32_t Packer::IntegerVector(py::handle value, const TypeTable* ref,
                               const Place& place) {
  const absl::string_view expected = "integers in one dimension";
  const py::array given = RealArray(value, expected, place);
  const char kind = given.dtype().kind();
  if (given.size() > 0 && kind != 'i' && kind != 'u') {
    Refuse(place, expected, value);
  }
  MakeRoomFor(static_cast<size_t>(given.size()) * sizeof(T), place);
  const auto array =
      py::array_t<int64_t, py::array::c_style | py::array::forcecast>::ensure(
          given);
  if (!array) Refuse(place, expected, value);
  std::vector<T> numbers(static_cast<size_t>(array.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t wide = array.data()[i];
    numbers[i] = static_cast<T>(wide);
    // A uint64 above int64's range has wrapped and is negative here.
    if (static_cast<int64_t>(numbers[i]) != wide ||
        (std::is_unsigned_v<T> && wide < 0) || ref != nullptr) {
      Place element = place;
      element.index = static_cast<py::ssize_t>(i);
      const py::object one = given[py::int_(i)];
      numbers[i] = Integer<T>(one, ref, element);
    }
  }
  return builder_.CreateVector(numbers).o;
}

uint32_t Packer::PackText(py::handle value, const Place& place) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_Check(value.ptr())
                               ? PyUnicode_AsUTF8AndSize(value.ptr(), &size)
                               : nullptr;
  if (text == nullptr) Refuse(place, "a str of Unicode", value);
  MakeRoomFor(static_cast<size_t>(size), place);
  return builder_.CreateString(text, static_cast<size_t>(size)).o;
}

uint32_t Packer::PackVector(py::handle value, ElementaryType type,
                            const TypeTable* ref, const Place& place) {
  uint32_t numbers = 0;
  if (WithNumberType(type, [&]<typename T>(T) {
        if constexpr (std::is_floating_point_v<T>) {
          numbers = RealVector<T>(value, place);
        } else {
          numbers = IntegerVector<T>(value, ref, place);
        }
      })) {
    return numbers;
  }
  if (!PySequence_Check(value.ptr()) || PyUnicode_Check(value.ptr()) ||
      PyBytes_Check(value.ptr())) {
    Refuse(place, "a sequence", value);
  }
  std::vector<flatbuffers::Offset<void>> elements;
  Place element = place;
  for (const py::handle each : value) {
    element.index = static_cast<py::ssize_t>(elements.size());
    elements.push_back(type == flatbuffers::ET_STRING
                           ? flatbuffers::Offset<void>(PackText(each, element))
                           : PackTable(each, ref, element));
  }
  MakeRoomFor(elements.size() * sizeof(uint32_t), place);
  return builder_.CreateVector(elements).o;
}

Packer::AddField Packer::PackValue(py::handle value, ElementaryType type,
                                   const TypeTable* ref, const Place& place,
                                   voffset_t field) {
  if (type == flatbuffers::ET_BOOL) {
    // numpy.bool_ is not a bool. Its type has the name bool_ or bool.
    const std::string kind =
        py::str(py::type::handle_of(value).attr("__name__"));
    if (!PyBool_Check(value.ptr()) && kind != "bool_" && kind != "bool") {
      Refuse(place, "a bool", value);
    }
    return Number<uint8_t>(field, PyObject_IsTrue(value.ptr()) == 1 ? 1 : 0);
  }
  AddField number;
  if (WithNumberType(type, [&]<typename T>(T) {
        if constexpr (std::is_floating_point_v<T>) {
          number = Number(field, Real<T>(value, place));
        } else {
          number = Number(field, Integer<T>(value, ref, place));
        }
      })) {
    return number;
  }
  if (type == flatbuffers::ET_STRING) {
    return Offset(field, PackText(value, place));
  }
  if (ref->st != flatbuffers::ST_STRUCT) {
    return Offset(field, PackTable(value, ref, place).o);
  }
  const std::string expected = absl::StrCat(ref->num_elems, " numbers");
  const auto array =
      py::array_t<float, py::array::c_style | py::array::forcecast>::ensure(
          RealArray(value, expected, place));
  if (!array || static_cast<size_t>(array.size()) != ref->num_elems) {
    Refuse(place, expected, value);
  }
  std::vector<float> floats(array.data(), array.data() + array.size());
  return [this, field, floats = std::move(floats)] {
    builder_.StartStruct(alignof(float));
    builder_.PushBytes(reinterpret_cast<const uint8_t*>(floats.data()),
                       floats.size() * sizeof(float));
    builder_.AddStructOffset(field, builder_.EndStruct());
  };
}

flatbuffers::Offset<void> Packer::PackTable(py::handle fields,
                                            const TypeTable* type,
                                            const Place& place) {
  if (!PyDict_Check(fields.ptr())) Refuse(place, "a dict of fields", fields);
  std::vector<AddField> adders;
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(fields)) {
    size_t index = 0;
    while (index < type->num_elems &&
           (!PyUnicode_Check(key.ptr()) ||
            PyUnicode_CompareWithASCIIString(key.ptr(), type->names[index]) !=
                0)) {
      ++index;
    }
    if (index == type->num_elems) {
      std::string expected = "fields";
      for (size_t i = 0; i < type->num_elems; ++i) {
        absl::StrAppend(&expected, i == 0 ? " " : ", ", type->names[i]);
      }
      Refuse(place, expected, key);
    }
    if (value.is_none()) continue;
    const TypeCode code = type->type_codes[index];
    const TypeTable* const ref = RefOf(type, code);
    const Place at = {&place, type->names[index]};
    const voffset_t field =
        flatbuffers::FieldIndexToOffset(static_cast<voffset_t>(index));
    const auto element = static_cast<ElementaryType>(code.base_type);
    adders.push_back(code.is_repeating != 0
                         ? Offset(field, PackVector(value, element, ref, at))
                         : PackValue(value, element, ref, at, field));
  }
  // An upper bound for the table, its head and its vtable.
  constexpr size_t kMostFieldBytes = 4 * sizeof(float) + 8;
  MakeRoomFor(adders.size() * kMostFieldBytes + 16, place);
  const flatbuffers::uoffset_t start = builder_.StartTable();
  for (AddField& add : adders) add();
  return flatbuffers::Offset<void>(builder_.EndTable(start));
}

}  // namespace

flatbuffers::Offset<void> PackTable(py::handle fields, const TypeTable* type,
                                    absl::string_view name,
                                    absl::string_view region,
                                    FlatBufferBuilder* builder) {
  return Packer(builder, region).PackTable(fields, type, {nullptr, name});
}

}  // namespace tandem
