#include "client_py/bindings/envelope_values.h"

#include <pybind11/numpy.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

namespace tandem {
namespace py = pybind11;
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Table;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;
using flatbuffers::voffset_t;

// What EnvelopeReader takes. FlatBuffers ends the process at 2 GiB.
constexpr size_t kMostBytes = size_t{64} * 1024 * 1024;

const TypeTable* RefOf(const TypeTable* table, TypeCode code) {
  return code.sequence_ref < 0 ? nullptr
                               : table->type_refs[code.sequence_ref]();
}

const TypeTable* TableOf(rpc::Payload payload) {
  // The union's own table has no row for NONE's table.
  const TypeTable* const all = rpc::PayloadTypeTable();
  for (size_t i = 0; i < all->num_elems; ++i) {
    if (all->values[i] == static_cast<int64_t>(payload)) {
      return RefOf(all, all->type_codes[i]);
    }
  }
  return nullptr;
}

bool IsStruct(const TypeTable* table) {
  return table->st == flatbuffers::ST_STRUCT;
}

// ---------------------------------------------------------------------------
// To Python

// A table's field names as Python's, made once.
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
  // The engine's bytes may be no UTF-8.
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

py::dict TableValues(const Table* table, const TypeTable* type);

py::object Floats(const uint8_t* at, size_t count) {
  py::array_t<float> array(static_cast<py::ssize_t>(count));
  std::memcpy(array.mutable_data(), at, count * sizeof(float));
  return array;
}

py::object Value(const uint8_t* at, ElementaryType type, const TypeTable* ref) {
  switch (type) {
    case flatbuffers::ET_BOOL:
      return py::bool_(at != nullptr && *at != 0);
    case flatbuffers::ET_UTYPE:
    case flatbuffers::ET_UCHAR:
      return Number<uint8_t>(at);
    case flatbuffers::ET_CHAR:
      return Number<int8_t>(at);
    case flatbuffers::ET_SHORT:
      return Number<int16_t>(at);
    case flatbuffers::ET_USHORT:
      return Number<uint16_t>(at);
    case flatbuffers::ET_INT:
      return Number<int32_t>(at);
    case flatbuffers::ET_UINT:
      return Number<uint32_t>(at);
    case flatbuffers::ET_LONG:
      return Number<int64_t>(at);
    case flatbuffers::ET_ULONG:
      return Number<uint64_t>(at);
    case flatbuffers::ET_FLOAT:
      return Number<float>(at);
    case flatbuffers::ET_DOUBLE:
      return Number<double>(at);
    case flatbuffers::ET_STRING:
      return Text(at);
    case flatbuffers::ET_SEQUENCE:
      if (at == nullptr) return py::none();
      if (IsStruct(ref)) return Floats(at, ref->num_elems);
      return TableValues(
          reinterpret_cast<const Table*>(
              at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at)),
          ref);
  }
  return py::none();
}

py::object VectorValue(const uint8_t* at, ElementaryType type,
                       const TypeTable* ref) {
  const uint8_t* const start =
      at == nullptr ? nullptr
                    : at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
  const auto numbers = [start]<typename T>(T) {
    return Array(reinterpret_cast<const flatbuffers::Vector<T>*>(start));
  };
  switch (type) {
    case flatbuffers::ET_BOOL:
    case flatbuffers::ET_UTYPE:
    case flatbuffers::ET_UCHAR:
      return numbers(uint8_t{});
    case flatbuffers::ET_CHAR:
      return numbers(int8_t{});
    case flatbuffers::ET_SHORT:
      return numbers(int16_t{});
    case flatbuffers::ET_USHORT:
      return numbers(uint16_t{});
    case flatbuffers::ET_INT:
      return numbers(int32_t{});
    case flatbuffers::ET_UINT:
      return numbers(uint32_t{});
    case flatbuffers::ET_LONG:
      return numbers(int64_t{});
    case flatbuffers::ET_ULONG:
      return numbers(uint64_t{});
    case flatbuffers::ET_FLOAT:
      return numbers(float{});
    case flatbuffers::ET_DOUBLE:
      return numbers(double{});
    case flatbuffers::ET_STRING:
    case flatbuffers::ET_SEQUENCE:
      break;
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

// ---------------------------------------------------------------------------
// From Python

// Where in a request something lies, for messages: made when one is needed.
struct Place {
  const Place* in;
  absl::string_view name;
  py::ssize_t index = -1;  // of an element; -1: the field itself

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
  // A field's value, ready to be put into its table.
  struct Packed {
    voffset_t field;
    ElementaryType type;
    uint64_t bits = 0;    // of a number
    uint32_t offset = 0;  // of what lies outside of the table; else 0
    float floats[4] = {};
    size_t num_floats = 0;  // of a struct
  };

  [[noreturn]] void Refuse(const Place& place, absl::string_view expected,
                           py::handle found) const {
    PyErr_Clear();  // of the attempt to convert it
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
    Raise(MakeError(ErrorCode::kInvalidArgument,
                    absl::StrCat(place.Text(), ": expected ", expected,
                                 ", found ", text, "; nothing was sent")),
          region_);
  }

  void MakeRoomFor(size_t bytes, const Place& place) const {
    if (bytes <= kMostBytes && builder_.GetSize() + bytes <= kMostBytes) return;
    Raise(MakeError(
              ErrorCode::kMessageTooLarge,
              absl::StrCat(place.Text(),
                           ": expected a request of at "
                           "most ",
                           kMostBytes, " bytes, found more; nothing was sent")),
          region_);
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
  void PackValue(py::handle value, const TypeTable* ref, const Place& place,
                 Packed* packed);
  void Put(const Packed& packed);

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

// float32 or not, C-contiguous, of numbers, of one dimension.
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
    // uint64 above int64's range has wrapped, and so is negative here.
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
  switch (type) {
    case flatbuffers::ET_BOOL:
    case flatbuffers::ET_UTYPE:
    case flatbuffers::ET_UCHAR:
      return IntegerVector<uint8_t>(value, ref, place);
    case flatbuffers::ET_CHAR:
      return IntegerVector<int8_t>(value, ref, place);
    case flatbuffers::ET_SHORT:
      return IntegerVector<int16_t>(value, ref, place);
    case flatbuffers::ET_USHORT:
      return IntegerVector<uint16_t>(value, ref, place);
    case flatbuffers::ET_INT:
      return IntegerVector<int32_t>(value, ref, place);
    case flatbuffers::ET_UINT:
      return IntegerVector<uint32_t>(value, ref, place);
    case flatbuffers::ET_LONG:
      return IntegerVector<int64_t>(value, ref, place);
    case flatbuffers::ET_ULONG:
      return IntegerVector<uint64_t>(value, ref, place);
    case flatbuffers::ET_FLOAT:
      return RealVector<float>(value, place);
    case flatbuffers::ET_DOUBLE:
      return RealVector<double>(value, place);
    case flatbuffers::ET_STRING:
    case flatbuffers::ET_SEQUENCE:
      break;
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

void Packer::PackValue(py::handle value, const TypeTable* ref,
                       const Place& place, Packed* packed) {
  const auto integer = [&]<typename T>(T) {
    packed->bits = static_cast<uint64_t>(Integer<T>(value, ref, place));
  };
  const auto real = [&]<typename T>(T) {
    const T number = Real<T>(value, place);
    std::memcpy(&packed->bits, &number, sizeof(number));
  };
  switch (packed->type) {
    case flatbuffers::ET_BOOL: {
      // numpy.bool_ is no bool, and calls itself bool_ or bool.
      const std::string kind =
          py::str(py::type::handle_of(value).attr("__name__"));
      if (!PyBool_Check(value.ptr()) && kind != "bool_" && kind != "bool") {
        Refuse(place, "a bool", value);
      }
      packed->bits = PyObject_IsTrue(value.ptr()) == 1 ? 1 : 0;
      return;
    }
    case flatbuffers::ET_UTYPE:
    case flatbuffers::ET_UCHAR:
      return integer(uint8_t{});
    case flatbuffers::ET_CHAR:
      return integer(int8_t{});
    case flatbuffers::ET_SHORT:
      return integer(int16_t{});
    case flatbuffers::ET_USHORT:
      return integer(uint16_t{});
    case flatbuffers::ET_INT:
      return integer(int32_t{});
    case flatbuffers::ET_UINT:
      return integer(uint32_t{});
    case flatbuffers::ET_LONG:
      return integer(int64_t{});
    case flatbuffers::ET_ULONG:
      return integer(uint64_t{});
    case flatbuffers::ET_FLOAT:
      return real(float{});
    case flatbuffers::ET_DOUBLE:
      return real(double{});
    case flatbuffers::ET_STRING:
      packed->offset = PackText(value, place);
      return;
    case flatbuffers::ET_SEQUENCE:
      break;
  }
  if (!IsStruct(ref)) {
    packed->offset = PackTable(value, ref, place).o;
    return;
  }
  packed->num_floats = ref->num_elems;
  const std::string expected = absl::StrCat(ref->num_elems, " numbers");
  const auto array =
      py::array_t<float, py::array::c_style | py::array::forcecast>::ensure(
          RealArray(value, expected, place));
  if (!array || static_cast<size_t>(array.size()) != ref->num_elems) {
    Refuse(place, expected, value);
  }
  std::memcpy(packed->floats, array.data(),
              static_cast<size_t>(array.nbytes()));
}

void Packer::Put(const Packed& packed) {
  if (packed.num_floats > 0) {
    builder_.StartStruct(alignof(float));
    builder_.PushBytes(reinterpret_cast<const uint8_t*>(packed.floats),
                       packed.num_floats * sizeof(float));
    builder_.AddStructOffset(packed.field, builder_.EndStruct());
    return;
  }
  if (packed.offset != 0) {
    builder_.AddOffset(packed.field, flatbuffers::Offset<void>(packed.offset));
    return;
  }
  switch (flatbuffers::InlineSize(packed.type, nullptr)) {
    case 1:
      return builder_.AddElement(packed.field,
                                 static_cast<uint8_t>(packed.bits));
    case 2:
      return builder_.AddElement(packed.field,
                                 static_cast<uint16_t>(packed.bits));
    case 4:
      return builder_.AddElement(packed.field,
                                 static_cast<uint32_t>(packed.bits));
    default:
      return builder_.AddElement(packed.field, packed.bits);
  }
}

flatbuffers::Offset<void> Packer::PackTable(py::handle fields,
                                            const TypeTable* type,
                                            const Place& place) {
  if (!PyDict_Check(fields.ptr())) Refuse(place, "a dict of fields", fields);
  std::vector<Packed> values;
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
    Packed packed = {
        .field = flatbuffers::FieldIndexToOffset(static_cast<voffset_t>(index)),
        .type = static_cast<ElementaryType>(code.base_type)};
    if (code.is_repeating != 0) {
      packed.offset = PackVector(value, packed.type, ref, at);
    } else {
      PackValue(value, ref, at, &packed);
    }
    values.push_back(packed);
  }
  // Where it lies within itself, its head and its vtable, at most.
  MakeRoomFor(values.size() * (sizeof(Packed::floats) + 8) + 16, place);
  const flatbuffers::uoffset_t start = builder_.StartTable();
  for (const Packed& value : values) Put(value);
  return flatbuffers::Offset<void>(builder_.EndTable(start));
}

}  // namespace

MethodPayloads PayloadsOf(rpc::MethodId method) {
  using M = rpc::MethodId;
  using P = rpc::Payload;
  switch (method) {
    case M::GetAgentSchema:
      return {P::GetAgentSchemaRequest, P::GetAgentSchemaResponse};
    case M::ResetAgent:
      return {P::ResetAgentRequest, P::ResetAgentResponse};
    case M::GetJointState:
    case M::StreamJointState:
      return {P::GetJointStateRequest, P::GetJointStateResponse};
    case M::GetMujocoInfo:
      return {P::GetMujocoInfoRequest, P::GetMujocoInfoResponse};
    case M::SendControl:
      return {P::SendControlRequest, P::SendControlResponse};
    case M::GetTelemetrySchema:
      return {P::GetTelemetrySchemaRequest, P::GetTelemetrySchemaResponse};
    case M::StreamTelemetry:
      return {P::StreamTelemetryRequest, P::TelemetryFrame};
    case M::GetSceneInfo:
      return {P::GetSceneInfoRequest, P::GetSceneInfoResponse};
    case M::ListEntities:
      return {P::ListEntitiesRequest, P::ListEntitiesResponse};
    case M::GetEntity:
      return {P::GetEntityRequest, P::GetEntityResponse};
    case M::SetEntityTransform:
      return {P::SetEntityTransformRequest, P::SetEntityTransformResponse};
    case M::SetSimulationMode:
      return {P::SetSimulationModeRequest, P::SetSimulationModeResponse};
    case M::GetSimulationMode:
      return {P::GetSimulationModeRequest, P::GetSimulationModeResponse};
    case M::SetPaused:
      return {P::SetPausedRequest, P::SetPausedResponse};
    case M::SingleStep:
      return {P::SingleStepRequest, P::SingleStepResponse};
    case M::ListCameras:
      return {P::ListCamerasRequest, P::ListCamerasResponse};
    case M::GetCameraFrame:
      return {P::GetCameraFrameRequest, P::NamedImageFrame};
    case M::StreamCamera:
      return {P::StreamCameraRequest, P::ImageFrame};
    case M::GetViewportInfo:
      return {P::GetViewportInfoRequest, P::GetViewportInfoResponse};
    case M::GetViewportFrame:
      return {P::GetViewportFrameRequest, P::NamedImageFrame};
    case M::StreamViewport:
      return {P::StartViewportStreamRequest, P::ImageFrame};
    case M::Draw:
      return {P::DebugDrawRequest, P::DebugDrawResponse};
    case M::CancelStream:
      return {P::CancelStreamRequest, P::CancelStreamResponse};
    case M::GetServices:
      return {P::GetServicesRequest, P::GetServicesResponse};
    case M::NONE:
      break;
  }
  return {P::NONE, P::NONE};
}

rpc::EnvelopeT PackRequest(rpc::MethodId method, py::handle fields,
                           absl::string_view region) {
  const rpc::Payload request = PayloadsOf(method).request;
  const TypeTable* const type = TableOf(request);
  if (type == nullptr) {
    Raise(MakeError(ErrorCode::kInvalidArgument,
                    absl::StrCat("method: expected a tandem.MethodId, found ",
                                 static_cast<int>(method))),
          region);
  }
  FlatBufferBuilder builder;
  const Place place = {nullptr, rpc::EnumNamePayload(request)};
  const flatbuffers::Offset<void> payload =
      Packer(&builder, region).PackTable(fields, type, place);
  rpc::FinishEnvelopeBuffer(
      builder, rpc::CreateEnvelope(builder, method, 0, 0, request, payload));
  rpc::EnvelopeT envelope;
  rpc::GetEnvelope(builder.GetBufferPointer())->UnPackTo(&envelope);
  return envelope;
}

py::dict PayloadValues(const rpc::Envelope& envelope) {
  return TableValues(static_cast<const Table*>(envelope.payload()),
                     TableOf(envelope.payload_type()));
}

}  // namespace tandem
