#include "client_py/bindings/info_reader.h"

#include <cstring>
#include <span>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"

namespace tandem {
namespace py = pybind11;
namespace {

constexpr int kTop = -1;
// The first kinds of each reader.
constexpr uint32_t kDictKind = 0;
constexpr uint32_t kObjectsKind = 1;
// Gymnasium's name of the last observations; at any depth it makes an object
// array for this name.
constexpr char kFinalObs[] = "final_obs";
constexpr char kFinalInfo[] = "final_info";

[[noreturn]] void RaiseBroken(uint32_t first_env, absl::string_view text) {
  Raise(MakeError(
            ErrorCode::kBrokenPeer,
            absl::StrCat("infos of environments from ", first_env, ": ", text)),
        "");
}

void Set(PyObject* dict, const py::object& key, PyObject* value) {
  if (PyDict_SetItem(dict, key.ptr(), value) != 0) {
    throw py::error_already_set();
  }
}

// Returns a new array of zeros, or of None for objects.
PyObject* NewZeros(PyObject* descriptor, uint32_t num_envs,
                   std::span<const ptrdiff_t> shape, size_t value_bytes) {
  std::vector<py::ssize_t> all = {num_envs};
  all.insert(all.end(), shape.begin(), shape.end());
  PyObject* const array = NewArray(descriptor, all);
  if (descriptor != Descriptor<PyObject*>()) {
    std::memset(Data<std::byte>(array), 0, value_bytes * num_envs);
    return array;
  }
  auto* const slots = Data<PyObject*>(array);
  for (uint32_t env = 0; env < num_envs; ++env) {
    Py_XSETREF(slots[env], Py_NewRef(Py_None));
  }
  return array;
}

void SetObject(PyObject* array, size_t env, py::object value) {
  Py_XSETREF(Data<PyObject*>(array)[env], value.release().ptr());
}

// Returns a row's value as its environment returned it; not of pickled columns.
py::object ValueOf(const InfoAreaView::Column& column, uint32_t row) {
  if (column.value == InfoValue::kNone) return py::none();
  const std::byte* const bytes = column.values + column.value_bytes * row;
  PyObject* const descriptor = NumpyTypeOf(column.type).descriptor;
  if (column.value == InfoValue::kArray) {
    const py::object array = Owned(NewArray(
        descriptor,
        std::vector<py::ssize_t>(column.shape.begin(), column.shape.end())));
    std::memcpy(Data<std::byte>(array.ptr()), bytes, column.value_bytes);
    return array;
  }
  alignas(uint64_t) std::byte copy[sizeof(uint64_t)];
  std::memcpy(copy, bytes, column.value_bytes);
  const py::object scalar =
      Owned(NumpyApi::get().PyArray_Scalar_(copy, descriptor, nullptr));
  if (column.value == InfoValue::kNumpy) return scalar;
  return scalar.attr("item")();
}

}  // namespace

InfoReader::InfoReader(uint32_t num_envs, const py::sequence& areas,
                       py::function final_obs)
    : num_envs_(num_envs),
      final_obs_(std::move(final_obs)),
      loads_(py::module_::import("pickle").attr("loads")) {
  for (const py::handle each : areas) {
    const auto [first_env, rows, array] =
        each.cast<std::tuple<uint32_t, uint32_t, py::array>>();
    const auto bytes = static_cast<uint64_t>(array.nbytes());
    if (!array.dtype().is(py::dtype::of<uint8_t>()) || array.ndim() != 1 ||
        !IsContiguous(array.ptr()) || bytes < MinInfoAreaBytes(rows) ||
        bytes > kMaxInfoAreaBytes || first_env > num_envs ||
        rows > num_envs - first_env) {
      RaiseInvalid(absl::StrCat("areas: expected uint8 arrays for rows of ",
                                num_envs, " environments, found ", bytes,
                                " bytes for environments ", first_env, " + ",
                                rows));
    }
    areas_.push_back(
        {.first_env = first_env,
         .view = InfoAreaView(
             {static_cast<const std::byte*>(array.data()), bytes}, rows),
         .keeper = array});
  }
  kinds_ = {{Kind::kDict}, {Kind::kObjects}};
  final_obs_node_ = NodeOf(kTop, kFinalObs);
  final_info_node_ = NodeOf(kTop, kFinalInfo);
}

py::object InfoReader::Merged(const py::object& chosen) {
  const OneCall call(&busy_);
  const std::vector<Area*> areas = Read(chosen);
  ++exchange_;
  merged_ = py::dict();
  for (Area* const area : areas) {
    if (!MergeArea(area)) {
      merged_ = py::none();
      break;
    }
  }
  return std::exchange(merged_, py::none());
}

py::list InfoReader::Rows(const py::object& chosen) {
  const OneCall call(&busy_);
  py::list all;
  for (const Area* const area : Read(chosen)) {
    size_t pickle = 0;
    for (uint32_t row = 0; row < area->view.rows(); ++row) {
      const py::object last = Info(*area, InfoPart::kFinal, row, &pickle);
      const py::object info = Info(*area, InfoPart::kInfo, row, &pickle);
      if (last.is_none() && info.is_none()) continue;
      all.append(py::make_tuple(area->first_env + row, last, info));
    }
  }
  return all;
}

std::vector<InfoReader::Area*> InfoReader::Read(const py::object& chosen) {
  std::vector<Area*> read;
  const auto add = [&](Area* area) {
    const absl::Status status = area->view.Read();
    if (!status.ok()) RaiseBroken(area->first_env, status.message());
    if (area->view.rows_with_infos() == 0) return;
    UpdateTargets(area);
    read.push_back(area);
  };
  if (chosen.is_none()) {
    for (Area& area : areas_) add(&area);
  } else {
    for (const py::handle index : chosen) {
      add(&areas_.at(index.cast<size_t>()));
    }
  }
  return read;
}

int InfoReader::NodeOf(int parent, const std::string& key) {
  const auto known = node_numbers_.find({parent, key});
  if (known != node_numbers_.end()) return known->second;
  const auto number = static_cast<int>(nodes_.size());
  PyObject* const text = PyUnicode_DecodeUTF8(
      key.data(), static_cast<Py_ssize_t>(key.size()), "strict");
  if (text == nullptr) throw py::error_already_set();
  const py::str name = py::reinterpret_steal<py::str>(text);
  nodes_.push_back({.parent = parent,
                    .key = name,
                    .mask_key = py::str("_") + name,
                    .unusual = key == kFinalObs});
  node_numbers_.emplace(std::pair(parent, key), number);
  // A key with the name of another key's mask.
  const auto mark = [&](const std::string& other) {
    const auto found = node_numbers_.find({parent, other});
    if (found == node_numbers_.end()) return;
    nodes_[static_cast<size_t>(found->second)].unusual = true;
    nodes_.back().unusual = true;
  };
  mark("_" + key);
  if (key.starts_with('_')) mark(key.substr(1));
  return number;
}

uint32_t InfoReader::KindOf(Kind kind) {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i] == kind) return static_cast<uint32_t>(i);
  }
  kinds_.push_back(std::move(kind));
  return static_cast<uint32_t>(kinds_.size() - 1);
}

void InfoReader::UpdateTargets(Area* area) {
  if (area->logs != area->view.logs()) {
    area->logs = area->view.logs();
    area->targets.clear();
  }
  const auto& columns = area->view.columns();
  while (area->targets.size() < columns.size()) {
    const InfoAreaView::Column& column = columns[area->targets.size()];
    int node = column.part == InfoPart::kFinal ? final_info_node_ : kTop;
    for (const std::string& key : column.keys) {
      try {
        node = NodeOf(node, key);
      } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_UnicodeDecodeError)) throw;
        RaiseBroken(area->first_env, "path: expected UTF-8, found other bytes");
      }
    }
    uint32_t kind = kObjectsKind;
    if (column.value == InfoValue::kDict) {
      kind = kDictKind;
    } else if (HasValues(column.value) &&
               // Gymnasium makes an object array of numpy.bool.
               (column.value != InfoValue::kNumpy ||
                column.type != FieldType::kBool)) {
      kind = KindOf({Kind::kNumbers, column.type, column.shape});
    }
    area->targets.push_back({.node = node, .kind = kind});
  }
}

bool InfoReader::MergeArea(Area* area) {
  const std::span<const uint32_t> finals = area->view.words(InfoPart::kFinal);
  const std::span<const uint32_t> infos = area->view.words(InfoPart::kInfo);
  size_t pickle = 0;
  uint32_t row = 0;
  while (row < area->view.rows()) {
    uint32_t end = row + 1;
    if (finals[row] != kNoInfo) {
      const size_t env = area->first_env + row;
      if (!Ensure(final_obs_node_, kObjectsKind) ||
          !Ensure(final_info_node_, kDictKind)) {
        return false;
      }
      const Node& observations = nodes_[static_cast<size_t>(final_obs_node_)];
      const Node& values = nodes_[static_cast<size_t>(final_info_node_)];
      SetObject(observations.object, env, final_obs_(env));
      Data<bool>(observations.mask)[env] = true;
      Data<bool>(values.mask)[env] = true;
      if (!MergeRows(*area, finals[row], row, end, &pickle)) return false;
    } else {
      while (end < area->view.rows() && finals[end] == kNoInfo &&
             infos[end] == infos[row]) {
        ++end;
      }
    }
    if (infos[row] != kNoInfo &&
        !MergeRows(*area, infos[row], row, end, &pickle)) {
      return false;
    }
    row = end;
  }
  return true;
}

bool InfoReader::MergeRows(const Area& area, uint32_t word, uint32_t begin,
                           uint32_t end, size_t* pickle) {
  if (word == kPickledInfo) return false;
  const InfoAreaView::Pattern& pattern = area.view.pattern(word);
  std::vector<py::list> unpickled;
  if (pattern.pickled > 0) {
    for (uint32_t row = begin; row < end; ++row) {
      unpickled.push_back(Unpickled(area, (*pickle)++, pattern.pickled));
    }
  }
  py::ssize_t item = 0;  // of the unpickled lists
  const size_t first = area.first_env + begin;
  for (const uint32_t number : pattern.columns) {
    const InfoAreaView::Column& column = area.view.columns()[number];
    const Target& target = area.targets[number];
    if (column.value == InfoValue::kUnusual ||
        nodes_[static_cast<size_t>(target.node)].unusual ||
        !Ensure(target.node, target.kind)) {
      return false;
    }
    const Node& node = nodes_[static_cast<size_t>(target.node)];
    std::memset(Data<bool>(node.mask) + first, 1, end - begin);
    switch (kinds_[target.kind].form) {
      case Kind::kDict:
        break;
      case Kind::kNumbers:
        std::memcpy(Data<std::byte>(node.object) + first * column.value_bytes,
                    column.values + begin * column.value_bytes,
                    (end - begin) * column.value_bytes);
        break;
      case Kind::kObjects:
        for (uint32_t row = begin; row < end; ++row) {
          SetObject(node.object, area.first_env + row,
                    IsPickled(column.value)
                        ? py::reinterpret_borrow<py::object>(PyList_GET_ITEM(
                              unpickled[row - begin].ptr(), item))
                        : ValueOf(column, row));
        }
        if (IsPickled(column.value)) ++item;
        break;
    }
  }
  return true;
}

bool InfoReader::Ensure(int number, uint32_t kind) {
  Node& node = nodes_[static_cast<size_t>(number)];
  if (node.exchange == exchange_) return node.kind == kind;
  const Kind& of = kinds_[kind];
  py::object value;
  if (of.form == Kind::kDict) {
    value = py::dict();
  } else if (of.form == Kind::kObjects) {
    value = Owned(NewZeros(Descriptor<PyObject*>(), num_envs_, {}, 0));
  } else {
    size_t bytes = ElementBytes(of.type);
    for (const ptrdiff_t length : of.shape) {
      bytes *= static_cast<size_t>(length);
    }
    value = Owned(
        NewZeros(NumpyTypeOf(of.type).descriptor, num_envs_, of.shape, bytes));
  }
  const py::object mask = Owned(NewZeros(Descriptor<bool>(), num_envs_, {}, 1));
  PyObject* const dict = node.parent == kTop
                             ? merged_.ptr()
                             : nodes_[static_cast<size_t>(node.parent)].object;
  Set(dict, node.key, value.ptr());
  Set(dict, node.mask_key, mask.ptr());
  node.exchange = exchange_;
  node.kind = kind;
  node.object = value.ptr();
  node.mask = mask.ptr();
  return true;
}

py::list InfoReader::Unpickled(const Area& area, size_t pickle, size_t values) {
  const std::span<const std::byte> bytes = area.view.pickles()[pickle];
  const py::object value = loads_(
      py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  if (PyList_CheckExact(value.ptr()) == 0 ||
      static_cast<size_t>(PyList_GET_SIZE(value.ptr())) != values) {
    RaiseBroken(area.first_env,
                absl::StrCat("expected a pickled list of ", values,
                             " values, found ", Py_TYPE(value.ptr())->tp_name));
  }
  return py::reinterpret_borrow<py::list>(value);
}

py::object InfoReader::Info(const Area& area, InfoPart part, uint32_t row,
                            size_t* pickle) {
  const uint32_t word = area.view.words(part)[row];
  if (word == kNoInfo) return py::none();
  if (word == kPickledInfo) {
    const std::span<const std::byte> bytes = area.view.pickles()[(*pickle)++];
    py::object info = loads_(
        py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    if (part == InfoPart::kInfo && PyDict_Check(info.ptr()) == 0) {
      RaiseBroken(area.first_env,
                  absl::StrCat("expected a pickled dict, found ",
                               Py_TYPE(info.ptr())->tp_name));
    }
    return info;
  }
  const InfoAreaView::Pattern& pattern = area.view.pattern(word);
  py::list unpickled;
  if (pattern.pickled > 0) {
    unpickled = Unpickled(area, (*pickle)++, pattern.pickled);
  }
  py::ssize_t item = 0;
  const py::dict info;
  std::map<int, py::object> dicts;  // by node
  for (const uint32_t number : pattern.columns) {
    const InfoAreaView::Column& column = area.view.columns()[number];
    const Node& node = nodes_[static_cast<size_t>(area.targets[number].node)];
    py::object value;
    if (column.value == InfoValue::kDict) {
      value = py::dict();
      dicts[area.targets[number].node] = value;
    } else if (IsPickled(column.value)) {
      value = py::reinterpret_borrow<py::object>(
          PyList_GET_ITEM(unpickled.ptr(), item++));
    } else {
      value = ValueOf(column, row);
    }
    const auto parent = dicts.find(node.parent);
    Set(parent == dicts.end() ? info.ptr() : parent->second.ptr(), node.key,
        value.ptr());
  }
  return info;
}

}  // namespace tandem
