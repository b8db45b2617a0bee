#include "client_py/bindings/task_step.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "client_py/bindings/numpy_arrays.h"
#include "transport/session/step_arrays.h"

namespace tandem {
namespace py = pybind11;
namespace {

// Returns the values of an aligned array in C order with type T and this shape;
// nullptr for any other array.
template <typename T, size_t N>
const T* Values(py::handle given, const py::ssize_t (&shape)[N]) {
  if (!NumpyApi::get().PyArray_Check_(given.ptr()) ||
      !IsPlain(given.ptr(), py::dtype::num_of<T>(), shape)) {
    return nullptr;
  }
  return Data<const T>(given.ptr());
}

template <typename T>
void CopyNumbers(std::span<const float> from, PyObject* to) {
  std::copy(from.begin(), from.end(), Data<T>(to));
}

void CopyObservations(std::span<const float> from, bool wide, PyObject* to) {
  if (wide) {
    CopyNumbers<double>(from, to);
  } else {
    CopyNumbers<float>(from, to);
  }
}

// Converts as NumPy's astype.
template <typename T>
T Converted(double value) {
  return static_cast<T>(value);
}
template <>
int64_t Converted<int64_t>(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  return value >= -kEnd && value < kEnd ? static_cast<int64_t>(value)
                                        : std::numeric_limits<int64_t>::min();
}

// Copies `length` columns from column `first` on; a row has `stride` numbers.
// Rows outside `mask` become 0.
template <typename T>
void CopyColumns(std::span<const double> rows, size_t stride, size_t first,
                 size_t length, std::span<const uint8_t> mask, PyObject* to) {
  T* out = Data<T>(to);
  for (size_t env = 0; env < mask.size(); ++env) {
    const double* const row = rows.data() + env * stride + first;
    for (size_t i = 0; i < length; ++i) {
      *out++ = mask[env] != 0 ? Converted<T>(row[i]) : T{};
    }
  }
}

bool Any(std::span<const uint8_t> mask) {
  return std::ranges::any_of(mask, [](uint8_t one) { return one != 0; });
}

py::object FlagsOf(std::span<const uint8_t> mask) {
  PyObject* const array =
      NewArray(Descriptor<bool>(), {static_cast<py::ssize_t>(mask.size())});
  CopyFlags(mask, array);
  return Owned(array);
}

std::vector<uint8_t> Not(std::vector<uint8_t> mask) {
  for (uint8_t& one : mask) one = one == 0 ? 1 : 0;
  return mask;
}

void Set(const py::object& dict, py::handle name, const py::object& value) {
  if (PyDict_SetItem(dict.ptr(), name.ptr(), value.ptr()) != 0) {
    throw py::error_already_set();
  }
}

}  // namespace

TaskStep::TaskStep(NativeClient* client, Options options)
    : VectorStep(client, options.autoreset, !options.infos.empty()),
      options_(std::move(options)) {
  for (const py::handle row : options_.infos) {
    const auto [name, first, length, type, at_reset] = row.cast<
        std::tuple<py::str, size_t, std::optional<size_t>, py::dtype, bool>>();
    infos_.push_back({.name = name,
                      .mask_name = py::str("_") + name,
                      .first = first,
                      .length = length,
                      .dtype = type,
                      .at_reset = at_reset});
    PyObject* const of = type.ptr();
    if (first + length.value_or(1) > arrays().info_size ||
        (of != Descriptor<double>() && of != Descriptor<float>() &&
         of != Descriptor<int64_t>())) {
      throw py::value_error(
          "infos: expected columns of the region's rows, as float64, float32 "
          "or int64");
    }
  }
}

TaskStep::~TaskStep() { Py_XDECREF(obs_); }

void TaskStep::TakeActions(py::handle actions) {
  const py::ssize_t envs = static_cast<py::ssize_t>(num_envs());
  const size_t count = arrays().actions.size();
  const py::ssize_t of_each = static_cast<py::ssize_t>(arrays().act_size);
  if (options_.choices.has_value()) {
    const auto* const values = Values<int64_t>(actions, {envs});
    const auto in_range = [end = *options_.choices](int64_t value) {
      return value >= 0 && value < end;
    };
    if (values != nullptr && std::all_of(values, values + envs, in_range)) {
      floats_.assign(values, values + envs);
      taken_ = floats_;
      return;
    }
  } else {
    const auto* const floats = Values<float>(actions, {envs, of_each});
    if (floats != nullptr) {
      taken_ = {floats, count};
      return;
    }
    const auto* const doubles = Values<double>(actions, {envs, of_each});
    if (doubles != nullptr) {
      // Values out of float32's range become infinities, which Post refuses.
      floats_.resize(count);
      std::transform(doubles, doubles + count, floats_.begin(),
                     [](double value) { return static_cast<float>(value); });
      taken_ = floats_;
      return;
    }
  }
  converted_ = options_.convert(actions);
  const auto* const floats = Values<float>(converted_, {envs, of_each});
  if (floats == nullptr) {
    throw py::type_error("convert: expected float32[num_envs, act_size]");
  }
  taken_ = {floats, count};
}

void TaskStep::PostActions() { client().Post(taken_); }

void TaskStep::MakeObservations() {
  if (!options_.copy || obs_ != nullptr) return;
  obs_ = NewArray(options_.wide ? Descriptor<double>() : Descriptor<float>(),
                  {static_cast<py::ssize_t>(num_envs()),
                   static_cast<py::ssize_t>(arrays().obs_size)});
}

py::object TaskStep::Observations() {
  if (!options_.copy) return client().views().obs;
  MakeObservations();
  CopyObservations(arrays().obs, options_.wide, obs_);
  return Owned(std::exchange(obs_, nullptr));
}

void TaskStep::CopyRewards(double* to) const {
  std::ranges::copy(arrays().rewards, to);
}

py::object TaskStep::StepInfos() {
  const StepArrays& now = arrays();
  const bool any_ended =
      autoreset() == AutoresetMode::kSameStep && Any(now.dones);
  py::object infos;
  if (infos_.empty()) {
    infos = py::dict();
  } else {
    Mask stepped = resetting();
    if (any_ended) {
      std::ranges::transform(stepped, now.dones, stepped.begin(),
                             std::bit_or<>());
    }
    infos = Infos(now.infos, Not(std::move(stepped)), Mask(num_envs(), 1));
  }
  if (any_ended) AddFinal(infos, Mask(now.dones.begin(), now.dones.end()));
  return infos;
}

py::object TaskStep::ResetInfos() {
  return Infos(arrays().infos, Mask(num_envs(), 0), resetting());
}

py::object TaskStep::Infos(std::span<const double> rows, const Mask& stepped,
                           const Mask& present) const {
  py::object infos = py::dict();
  for (const InfoField& field : infos_) {
    const Mask& mask = field.at_reset ? present : stepped;
    if (!Any(mask)) continue;
    const py::ssize_t envs = static_cast<py::ssize_t>(mask.size());
    const size_t length = field.length.value_or(1);
    PyObject* const type = field.dtype.ptr();
    const py::object values =
        Owned(field.length.has_value()
                  ? NewArray(type, {envs, static_cast<py::ssize_t>(length)})
                  : NewArray(type, {envs}));
    const auto copy = type == Descriptor<double>()  ? CopyColumns<double>
                      : type == Descriptor<float>() ? CopyColumns<float>
                                                    : CopyColumns<int64_t>;
    copy(rows, arrays().info_size, field.first, length, mask, values.ptr());
    Set(infos, field.name, values);
    Set(infos, field.mask_name, FlagsOf(mask));
  }
  return infos;
}

void TaskStep::AddFinal(const py::object& infos, const Mask& ended) const {
  const py::object observations = Owned(NewArray(
      Descriptor<PyObject*>(), {static_cast<py::ssize_t>(ended.size())}));
  auto* const slots = Data<PyObject*>(observations.ptr());
  for (size_t env = 0; env < ended.size(); ++env) {
    py::object last = py::none();
    if (ended[env] != 0) last = FinalObservation(env);
    Py_XSETREF(slots[env], last.release().ptr());
  }
  Set(infos, py::str("final_obs"), observations);
  Set(infos, py::str("_final_obs"), FlagsOf(ended));
  Set(infos, py::str("final_info"), Infos(arrays().final_infos, ended, ended));
  Set(infos, py::str("_final_info"), FlagsOf(ended));
}

py::object TaskStep::FinalObservation(size_t env) const {
  const size_t of_each = arrays().obs_size;
  const py::object last =
      Owned(NewArray(options_.wide ? Descriptor<double>() : Descriptor<float>(),
                     {static_cast<py::ssize_t>(of_each)}));
  CopyObservations(arrays().final_obs.subspan(env * of_each, of_each),
                   options_.wide, last.ptr());
  return last;
}

}  // namespace tandem
