#include "client_py/bindings/info_writer.h"

#include <pybind11/gil_safe_call_once.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"

namespace tandem {
namespace py = pybind11;
namespace {

constexpr size_t kMostRecent = 8;
// Further shapes of arrays at one path are pickled: else a value such as a list
// of contacts would fill the log.
constexpr uint32_t kMaxArrayColumns = 8;
constexpr int kPickleProtocol = 5;
constexpr int kCOrder = 0;  // NPY_CORDER

uint64_t NewGeneration() {
  return static_cast<uint64_t>(
      std::chrono::system_clock::now().time_since_epoch().count());
}

// Whether a type is numpy.number or derived from it.
bool IsNumpyNumber(PyTypeObject* type) {
  // Not a static of the function: the import may let another thread run, which
  // would wait for the static with the GIL held.
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> number;
  number.call_once_and_store_result([]() -> py::object {
    return py::module_::import("numpy").attr("number");
  });
  return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(
                                    number.get_stored().ptr())) != 0;
}

bool IsKey(PyObject* key, const py::object& expected) {
  return key == expected.ptr() || (PyUnicode_CheckExact(key) &&
                                   PyUnicode_Compare(key, expected.ptr()) == 0);
}

// Copies the items of any mapping. Raises as the mapping's `items`.
py::object PlainDict(PyObject* mapping) {
  const py::object items =
      py::reinterpret_borrow<py::object>(mapping).attr("items")();
  py::object dict = py::dict();
  if (PyDict_MergeFromSeq2(dict.ptr(), items.ptr(), /*override=*/1) != 0) {
    throw py::error_already_set();
  }
  return dict;
}

size_t ValueBytes(FieldType type, std::span<const Py_ssize_t> shape) {
  size_t bytes = ElementBytes(type);
  for (const Py_ssize_t length : shape) bytes *= static_cast<size_t>(length);
  return bytes;
}

// Whether an array with this shape fits a column at all.
bool IsSmall(std::span<const Py_ssize_t> shape) {
  uint64_t values = 1;
  for (const Py_ssize_t length : shape) {
    if (static_cast<uint64_t>(length) > kMaxFieldValues) return false;
    values *= std::max<uint64_t>(static_cast<uint64_t>(length), 1);
    if (values > kMaxFieldValues) return false;
  }
  return shape.size() <= kMaxFieldDims;
}

}  // namespace

InfoWriter::InfoWriter(std::span<std::byte> area, uint32_t rows,
                       uint32_t first_env)
    : area_(area),
      rows_(rows),
      first_env_(first_env),
      plan_(PlanInfoArea(area.size(), rows)),
      words_(reinterpret_cast<uint32_t*>(area.data() + plan_.words)),
      log_end_(plan_.log),
      blob_end_(plan_.blob),
      dumps_(py::module_::import("pickle").attr("dumps")) {
  if (area.size() < MinInfoAreaBytes(rows) || area.size() > kMaxInfoAreaBytes) {
    RaiseInvalid(absl::StrCat("info_bytes: expected ", MinInfoAreaBytes(rows),
                              " .. ", kMaxInfoAreaBytes, " bytes for ", rows,
                              " environments, found ", area.size()));
  }
  if (reinterpret_cast<uintptr_t>(area.data()) % kInfoAlign != 0) {
    RaiseInvalid(absl::StrCat("info_area: expected an address divisible by ",
                              kInfoAlign, ", found another"));
  }
}

void InfoWriter::Begin() {
  if (!std::exchange(begun_, true)) {
    *header() = {.magic = kInfoAreaMagic,
                 .version = kInfoAreaVersion,
                 .header_bytes = sizeof(InfoAreaHeader),
                 .generation = NewGeneration(),
                 .rows = rows_,
                 .rows_with_infos = 0,
                 .log_bytes = 0,
                 .blob_bytes = 0,
                 .reserved_48 = {}};
  }
  std::fill_n(words_, size_t{2} * rows_, kNoInfo);
  blob_end_ = plan_.blob;
  header()->blob_bytes = 0;
  header()->rows_with_infos = 0;
}

void InfoWriter::BeginRow(uint32_t row) {
  row_ = row;
  row_blob_ = blob_end_;
}

void InfoWriter::Write(InfoPart part, PyObject* info) {
  py::object plain;
  if (!PyDict_Check(info) && PyObject_HasAttrString(info, "items") == 0) {
    RaiseInvalid(absl::StrCat("info of environment ", first_env_ + row_,
                              ": expected a dict, found ",
                              Py_TYPE(info)->tp_name));
  }
  if (!PyDict_Check(info) && part == InfoPart::kFinal) {
    // For Gymnasium an object, since it is a value of the dict of all infos.
    Pickle(part, info);
    SetWord(part, kPickledInfo);
    return;
  }
  if (!PyDict_CheckExact(info)) {
    plain = PlainDict(info);
    info = plain.ptr();
  }
  if (part == InfoPart::kInfo && PyDict_GET_SIZE(info) == 0) return;
  auto& recent = parts_[static_cast<size_t>(part)].recent;
  auto found = std::find_if(
      recent.begin(), recent.end(),
      [&](const auto& known) { return TryPattern(known.second, info); });
  uint32_t word = kPickledInfo;
  if (found == recent.end()) {
    auto described = Describe(part, info);
    if (described.has_value() && TryPattern(described->second, info)) {
      if (recent.size() == kMostRecent) recent.pop_back();
      found = recent.insert(recent.end(), *std::move(described));
    }
  }
  if (found != recent.end()) {
    word = found->first;
    std::rotate(recent.begin(), found, found + 1);
    if (!pickled_.empty()) {
      py::list values(pickled_.size());
      for (size_t i = 0; i < pickled_.size(); ++i) {
        PyList_SET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i),
                        Py_NewRef(pickled_[i]));
      }
      Pickle(part, values.ptr());
    }
  } else {
    Pickle(part, info);
  }
  SetWord(part, word);
}

void InfoWriter::SetWord(InfoPart part, uint32_t word) {
  if (*Word(InfoPart::kInfo) == kNoInfo && *Word(InfoPart::kFinal) == kNoInfo) {
    ++header()->rows_with_infos;
  }
  *Word(part) = word;
}

void InfoWriter::ClearRow() {
  if (*Word(InfoPart::kInfo) != kNoInfo || *Word(InfoPart::kFinal) != kNoInfo) {
    --header()->rows_with_infos;
  }
  *Word(InfoPart::kInfo) = kNoInfo;
  *Word(InfoPart::kFinal) = kNoInfo;
  blob_end_ = row_blob_;
  header()->blob_bytes = blob_end_ - plan_.blob;
}

InfoWriter::ValueType InfoWriter::TypeOf(PyObject* value) {
  PyTypeObject* const type = Py_TYPE(value);
  if (type == &PyFloat_Type) return {InfoValue::kPython, FieldType::kFloat64};
  if (type == &PyBool_Type) return {InfoValue::kPython, FieldType::kBool};
  if (type == &PyLong_Type) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return {InfoValue::kUnusual};
    return {InfoValue::kPython, FieldType::kInt64};
  }
  if (type == &PyDict_Type) return {InfoValue::kDict};
  if (value == Py_None) return {InfoValue::kNone};
  if (const auto scalar = TypeOfScalar(type); scalar.has_value()) {
    return {InfoValue::kNumpy, *scalar};
  }
  if (IsExactArray(value)) {
    const auto* const proxy = Proxy(value);
    const std::span<const Py_ssize_t> shape(proxy->dimensions,
                                            static_cast<size_t>(proxy->nd));
    const auto elements = TypeOfElements(value);
    if (!elements.has_value() || !IsSmall(shape)) return {InfoValue::kUnusual};
    return {InfoValue::kArray, *elements, {shape.begin(), shape.end()}};
  }
  if (NumpyApi::get().PyArray_Check_(value) || IsNumpyNumber(type)) {
    return {InfoValue::kUnusual};
  }
  return {InfoValue::kObject};
}

bool InfoWriter::TryPattern(const Pattern& pattern, PyObject* info) {
  pickled_.clear();
  size_t next = 0;
  return TryEntries(pattern, info, pattern.items, &next);
}

bool InfoWriter::TryEntries(const Pattern& pattern, PyObject* dict,
                            Py_ssize_t items, size_t* next) {
  if (PyDict_GET_SIZE(dict) != items) return false;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    const Entry& entry = pattern.entries[(*next)++];
    if (!IsKey(key, entry.key)) return false;
    if (entry.type.value == InfoValue::kDict) {
      if (!PyDict_CheckExact(value) ||
          !TryEntries(pattern, value, entry.items, next)) {
        return false;
      }
    } else if (!TryValue(entry, value)) {
      return false;
    } else if (IsPickled(entry.type.value)) {
      pickled_.push_back(value);
    }
  }
  return true;
}

bool InfoWriter::TryValue(const Entry& entry, PyObject* value) const {
  std::byte* const place = entry.values == nullptr
                               ? nullptr
                               : entry.values + entry.value_bytes * row_;
  const auto store = [place](auto number) {
    std::memcpy(place, &number, sizeof(number));
    return true;
  };
  switch (entry.type.value) {
    case InfoValue::kPython:
      switch (entry.type.type) {
        case FieldType::kFloat64:
          return PyFloat_CheckExact(value) && store(PyFloat_AS_DOUBLE(value));
        case FieldType::kBool:
          return PyBool_Check(value) && store(value == Py_True);
        default: {
          if (!PyLong_CheckExact(value)) return false;
          int overflow = 0;
          const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
          return overflow == 0 && store(number);
        }
      }
    case InfoValue::kNumpy:
      if (Py_TYPE(value) != entry.scalar) return false;
      std::memcpy(place, ScalarBytes(value), entry.value_bytes);
      return true;
    case InfoValue::kArray: {
      if (!IsExactArray(value)) return false;
      py::object copy;
      if (!IsContiguous(value)) {
        copy = Owned(NumpyApi::get().PyArray_NewCopy_(value, kCOrder));
        value = copy.ptr();
      }
      if (!IsPlain(value, entry.type_number, entry.type.shape)) return false;
      std::memcpy(place, Proxy(value)->data, entry.value_bytes);
      return true;
    }
    case InfoValue::kUnusual:
      // Any array may be pickled.
      return IsExactArray(value) || TypeOf(value).value == InfoValue::kUnusual;
    default:
      return TypeOf(value).value == entry.type.value;
  }
}

std::optional<std::pair<uint32_t, InfoWriter::Pattern>> InfoWriter::Describe(
    InfoPart part, PyObject* info) {
  Pattern pattern = {.entries = {}, .items = PyDict_GET_SIZE(info)};
  if (!DescribeItems(part, info, "", 1, &pattern)) return std::nullopt;
  std::vector<uint32_t> columns;
  for (const Entry& entry : pattern.entries) columns.push_back(entry.column);
  auto& numbers = parts_[static_cast<size_t>(part)].numbers;
  const auto known = numbers.find(columns);
  if (known != numbers.end()) return std::pair(known->second, pattern);
  const size_t bytes = columns.size() * sizeof(uint32_t);
  std::byte* const record = Append(sizeof(InfoPattern) + bytes);
  if (record == nullptr) return std::nullopt;
  auto* const head = reinterpret_cast<InfoPattern*>(record);
  head->kind = InfoRecordKind::kPattern;
  head->part = part;
  head->columns = static_cast<uint32_t>(columns.size());
  if (bytes > 0) std::memcpy(record + sizeof(*head), columns.data(), bytes);
  numbers.emplace(std::move(columns), ++patterns_);
  return std::pair(patterns_, pattern);
}

bool InfoWriter::DescribeItems(InfoPart part, PyObject* dict,
                               const std::string& path, uint32_t depth,
                               Pattern* pattern) {
  if (depth > kMaxInfoDepth) return false;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    if (!PyUnicode_CheckExact(key)) return false;
    Py_ssize_t length = 0;
    const char* const utf8 = PyUnicode_AsUTF8AndSize(key, &length);
    if (utf8 == nullptr) {  // a lone surrogate
      PyErr_Clear();
      return false;
    }
    if (PyDict_Check(value) && !PyDict_CheckExact(value)) return false;
    const std::string below =
        absl::StrCat(path, "/",
                     absl::StrReplaceAll(
                         absl::string_view(utf8, static_cast<size_t>(length)),
                         {{"~", "~0"}, {"/", "~1"}}));
    if (below.size() > kMaxInfoPathBytes) return false;
    ValueType type = TypeOf(value);
    const std::optional<uint32_t> column = ColumnOf(part, below, &type);
    if (!column.has_value()) return false;
    const bool typed = HasValues(type.value);
    pattern->entries.push_back(
        {.key = py::reinterpret_borrow<py::object>(key),
         .type = type,
         .column = *column,
         .type_number = typed ? NumpyTypeOf(type.type).number : -1,
         .scalar = typed ? NumpyTypeOf(type.type).scalar : nullptr,
         .values = columns_[*column].values,
         .value_bytes = columns_[*column].value_bytes,
         .items = type.value == InfoValue::kDict ? PyDict_GET_SIZE(value) : 0});
    if (type.value == InfoValue::kDict &&
        !DescribeItems(part, value, below, depth + 1, pattern)) {
      return false;
    }
  }
  return true;
}

std::optional<uint32_t> InfoWriter::ColumnOf(InfoPart part,
                                             const std::string& path,
                                             ValueType* type) {
  const std::string place =
      absl::StrCat(static_cast<int>(part), path, std::string(1, '\0'));
  const auto name = [&] {
    std::string text = absl::StrCat(place, static_cast<int>(type->value), " ",
                                    static_cast<int>(type->type));
    for (const Py_ssize_t length : type->shape) {
      absl::StrAppend(&text, " ", length);
    }
    return text;
  };
  auto known = column_numbers_.find(name());
  if (known != column_numbers_.end()) return known->second;
  if (type->value == InfoValue::kArray &&
      array_columns_[place] == kMaxArrayColumns) {
    *type = {InfoValue::kUnusual};
    known = column_numbers_.find(name());
    if (known != column_numbers_.end()) return known->second;
  }
  const bool typed = HasValues(type->value);
  const size_t value_bytes = typed ? ValueBytes(type->type, type->shape) : 0;
  const uint64_t head = InfoAligned(sizeof(InfoColumn) + path.size());
  std::byte* const record = Append(head + value_bytes * rows_);
  if (record == nullptr) return std::nullopt;
  auto* const column = reinterpret_cast<InfoColumn*>(record);
  column->kind = InfoRecordKind::kColumn;
  column->part = part;
  column->value = type->value;
  column->type = typed ? type->type : FieldType{};
  column->dims = static_cast<uint8_t>(type->shape.size());
  column->path_bytes = static_cast<uint32_t>(path.size());
  std::ranges::transform(type->shape, column->shape, [](Py_ssize_t length) {
    return static_cast<uint32_t>(length);
  });
  std::memcpy(record + sizeof(*column), path.data(), path.size());
  const auto number = static_cast<uint32_t>(columns_.size());
  columns_.push_back(
      {.values = typed ? record + head : nullptr, .value_bytes = value_bytes});
  column_numbers_.emplace(name(), number);
  if (type->value == InfoValue::kArray) ++array_columns_[place];
  return number;
}

std::byte* InfoWriter::Append(uint64_t bytes) {
  const uint64_t aligned = InfoAligned(bytes);
  if (aligned > plan_.blob - log_end_) return nullptr;
  std::byte* const record = area_.data() + log_end_;
  std::memset(record, 0, aligned);
  // The first member of both kinds of record.
  const auto length = static_cast<uint32_t>(aligned);
  std::memcpy(record, &length, sizeof(length));
  log_end_ += aligned;
  header()->log_bytes = log_end_ - plan_.log;
  return record;
}

void InfoWriter::Pickle(InfoPart part, PyObject* value) {
  py::object bytes;
  try {
    bytes = dumps_(py::handle(value), kPickleProtocol);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
    RaiseInvalid(absl::StrCat(
        "info of environment ", first_env_ + row_,
        ": expected values that pickle accepts, found ",
        std::string(py::str(error.type().attr("__name__"))), ": ",
        std::string(py::str(error.value())), "; remove them in a wrapper"));
  }
  const auto length = static_cast<uint64_t>(PyBytes_GET_SIZE(bytes.ptr()));
  const uint64_t needed = sizeof(InfoPickle) + InfoAligned(length);
  const uint64_t available = plan_.end - blob_end_;
  if (needed > available) {
    RaiseInvalid(absl::StrCat(
        "info of environment ", first_env_ + row_, ": expected at most ",
        available, " bytes of pickled values, found ", needed,
        "; pass a larger info_bytes: half of it is for pickled values, and the "
        "worker's area has ",
        area_.size()));
  }
  std::byte* const place = area_.data() + blob_end_;
  *reinterpret_cast<InfoPickle*>(place) = {
      .bytes = length, .row = row_, .part = part, .reserved_13 = {}};
  std::memcpy(place + sizeof(InfoPickle), PyBytes_AS_STRING(bytes.ptr()),
              length);
  blob_end_ += needed;
  header()->blob_bytes = blob_end_ - plan_.blob;
}

}  // namespace tandem
