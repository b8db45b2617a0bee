#include "client_py/bindings/row_values.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"

namespace tandem {
namespace py = pybind11;
namespace {

template <typename T>
bool StoreInt(char* place, int64_t number) {
  if (!std::in_range<T>(number)) return false;
  const auto stored = static_cast<T>(number);
  std::memcpy(place, &stored, sizeof(stored));
  return true;
}

}  // namespace

RowValues::RowValues(py::object values, size_t rows)
    : values_(std::move(values)),
      write_row_("write_row"),
      row_("row"),
      field_(FieldOf(values_.attr("array"), rows)) {}

std::optional<RowValues::Field> RowValues::FieldOf(const py::object& array,
                                                   size_t rows) {
  if (array.is_none()) return std::nullopt;
  if (!IsExactArray(array.ptr()) || Proxy(array.ptr())->nd == 0 ||
      Proxy(array.ptr())->dimensions[0] != static_cast<py::ssize_t>(rows)) {
    RaiseInvalid(absl::StrCat("array: expected an array of ", rows,
                              " rows, found ",
                              std::string(py::str(array.attr("shape")))));
  }
  const auto type = TypeOfElements(array.ptr());
  if (!type.has_value() || !IsContiguous(array.ptr())) return std::nullopt;
  const auto* const proxy = Proxy(array.ptr());
  Field field = {
      .keeper = array,
      .data = proxy->data,
      .writable = IsWritable(array.ptr()),
      .value_bytes = ElementBytes(*type),
      .type = *type,
      .numpy = &NumpyTypeOf(*type),
      .shape = {proxy->dimensions + 1, proxy->dimensions + proxy->nd}};
  for (const py::ssize_t length : field.shape) {
    field.value_bytes *= static_cast<size_t>(length);
  }
  return field;
}

void RowValues::Write(size_t row, PyObject* value) {
  if (field_.has_value() && field_->writable &&
      TryWrite(field_->data + row * field_->value_bytes, value)) {
    return;
  }
  const py::int_ index(row);
  PyObject* const arguments[] = {values_.ptr(), index.ptr(), value};
  Owned(PyObject_VectorcallMethod(write_row_.ptr(), arguments, 3, nullptr));
}

py::object RowValues::Read(size_t row) {
  if (!field_.has_value()) {
    const py::int_ index(row);
    PyObject* const arguments[] = {values_.ptr(), index.ptr()};
    return Owned(PyObject_VectorcallMethod(row_.ptr(), arguments, 2, nullptr));
  }
  const char* const place = field_->data + row * field_->value_bytes;
  if (field_->shape.empty()) return Number(place);
  py::object copy = Owned(NewArray(field_->numpy->descriptor, field_->shape));
  std::memcpy(Data<char>(copy.ptr()), place, field_->value_bytes);
  return copy;
}

bool RowValues::TryWrite(char* place, PyObject* value) const {
  if (IsExactArray(value)) {
    if (!IsPlain(value, field_->numpy->number, field_->shape)) return false;
    std::memcpy(place, Proxy(value)->data, field_->value_bytes);
    return true;
  }
  if (!field_->shape.empty()) return false;
  if (Py_TYPE(value) == field_->numpy->scalar) {
    std::memcpy(place, ScalarBytes(value), field_->value_bytes);
    return true;
  }
  return PyLong_CheckExact(value) && TryWriteInt(place, value);
}

bool RowValues::TryWriteInt(char* place, PyObject* value) const {
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) return false;
  switch (field_->type) {
    case FieldType::kUint8:
      return StoreInt<uint8_t>(place, number);
    case FieldType::kInt8:
      return StoreInt<int8_t>(place, number);
    case FieldType::kUint16:
      return StoreInt<uint16_t>(place, number);
    case FieldType::kInt16:
      return StoreInt<int16_t>(place, number);
    case FieldType::kUint32:
      return StoreInt<uint32_t>(place, number);
    case FieldType::kInt32:
      return StoreInt<int32_t>(place, number);
    case FieldType::kUint64:
      return StoreInt<uint64_t>(place, number);
    case FieldType::kInt64:
      return StoreInt<int64_t>(place, number);
    default:
      return false;
  }
}

py::object RowValues::Number(const char* place) {
  const auto make = [&] {
    return Owned(NumpyApi::get().PyArray_Scalar_(
        const_cast<char*>(place), field_->numpy->descriptor, nullptr));
  };
  if (field_->type != FieldType::kInt64) return make();
  uint64_t number = 0;  // a negative one is large
  std::memcpy(&number, place, sizeof(number));
  if (number >= numbers_.size()) return make();
  if (!numbers_[number]) numbers_[number] = make();
  return numbers_[number];
}

}  // namespace tandem
