#include "client_py/bindings/vector_step.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"
#include "transport/base/error.h"

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

void CopyFlags(std::span<const uint8_t> from, PyObject* to) {
  bool* const flags = Data<bool>(to);
  for (size_t i = 0; i < from.size(); ++i) flags[i] = from[i] != 0;
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

VectorStep::VectorStep(NativeClient* client, Options options)
    : client_(client),
      options_(std::move(options)),
      resetting_(num_envs(), uint8_t{1}) {
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

VectorStep::~VectorStep() {
  for (PyObject* const one : {obs_, rewards_, terminations_, truncations_}) {
    Py_XDECREF(one);
  }
}

py::object VectorStep::Step(py::handle actions) {
  Send(actions);
  return Recv();
}

void VectorStep::Send(py::handle actions) {
  py::object keeper;
  const std::span<const float> floats = Floats(actions, &keeper);
  // Reads the flags before Send: the engine changes them afterwards.
  const bool may_send = !client_->pending() && !client_->closed();
  Mask resetting;
  if (may_send &&
      (!infos_.empty() || options_.autoreset == AutoresetMode::kDisabled)) {
    resetting = ResetByNextStep();
  }
  client_->Post(floats);
  resetting_ = std::move(resetting);
  resets_only_ = false;
}

py::object VectorStep::Recv() {
  MakeArrays();
  client_->Await(client_->timeout_secs());
  return Results();
}

void VectorStep::ExpectReset(const py::array_t<bool>& mask) {
  resetting_.assign(mask.data(), mask.data() + mask.size());
  resets_only_ = true;
}

py::object VectorStep::ResetResults() {
  return Owned(PyTuple_Pack(2, Observations().ptr(), ResetInfos().ptr()));
}

std::span<const float> VectorStep::Floats(py::handle actions,
                                          py::object* keeper) {
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
      return floats_;
    }
  } else {
    const auto* const floats = Values<float>(actions, {envs, of_each});
    if (floats != nullptr) return {floats, count};
    const auto* const doubles = Values<double>(actions, {envs, of_each});
    if (doubles != nullptr) {
      // Values out of float32's range become infinities, which Post refuses.
      floats_.resize(count);
      std::transform(doubles, doubles + count, floats_.begin(),
                     [](double value) { return static_cast<float>(value); });
      return floats_;
    }
  }
  *keeper = options_.convert(actions);
  const auto* const floats = Values<float>(*keeper, {envs, of_each});
  if (floats == nullptr) {
    throw py::type_error("convert: expected float32[num_envs, act_size]");
  }
  return {floats, count};
}

VectorStep::Mask VectorStep::ResetByNextStep() const {
  const StepArrays& now = arrays();
  Mask resets(now.resets.begin(), now.resets.end());
  if (options_.autoreset == AutoresetMode::kNextStep) {
    std::ranges::transform(resets, now.dones, resets.begin(), std::bit_or<>());
  }
  if (options_.autoreset != AutoresetMode::kDisabled) return resets;
  std::vector<size_t> ended;
  constexpr size_t kMostNamed = 10;
  for (size_t env = 0; env < resets.size() && ended.size() < kMostNamed;
       ++env) {
    if (now.dones[env] != 0 && resets[env] == 0) ended.push_back(env);
  }
  if (ended.empty()) return resets;
  Raise(MakeError(
            ErrorCode::kInvalidArgument,
            absl::StrCat("expected no ended episode at a step with autoreset "
                         "disabled, found environments [",
                         absl::StrJoin(ended, ", "),
                         "]; nothing was sent; "
                         "reset(options={'reset_mask': mask}) starts their "
                         "next")),
        "");
}

void VectorStep::MakeArrays() {
  const py::ssize_t envs = static_cast<py::ssize_t>(num_envs());
  if (options_.copy && obs_ == nullptr) {
    obs_ = NewArray(options_.wide ? Descriptor<double>() : Descriptor<float>(),
                    {envs, static_cast<py::ssize_t>(arrays().obs_size)});
  }
  if (rewards_ == nullptr) rewards_ = NewArray(Descriptor<double>(), {envs});
  for (PyObject** const flags : {&terminations_, &truncations_}) {
    if (*flags == nullptr) *flags = NewArray(Descriptor<bool>(), {envs});
  }
}

py::object VectorStep::Results() {
  const StepArrays& now = arrays();
  const py::object obs = Observations();
  const py::object rewards = Owned(std::exchange(rewards_, nullptr));
  const py::object terminations = Owned(std::exchange(terminations_, nullptr));
  const py::object truncations = Owned(std::exchange(truncations_, nullptr));
  py::object infos;
  if (resets_only_) {
    std::fill_n(Data<double>(rewards.ptr()), num_envs(), 0.0);
    std::fill_n(Data<bool>(terminations.ptr()), num_envs(), false);
    std::fill_n(Data<bool>(truncations.ptr()), num_envs(), false);
    infos = ResetInfos();
  } else {
    CopyNumbers<double>(now.rewards, rewards.ptr());
    CopyFlags(now.terminateds, terminations.ptr());
    CopyFlags(now.truncateds, truncations.ptr());
    const bool same_step = options_.autoreset == AutoresetMode::kSameStep;
    const bool any_ended = same_step && Any(now.dones);
    if (infos_.empty()) {
      infos = py::dict();
    } else {
      Mask stepped = resetting_;
      if (any_ended) {
        std::ranges::transform(stepped, now.dones, stepped.begin(),
                               std::bit_or<>());
      }
      infos = Infos(now.infos, Not(std::move(stepped)), Mask(num_envs(), 1));
    }
    if (any_ended) AddFinal(infos, Mask(now.dones.begin(), now.dones.end()));
  }
  return Owned(PyTuple_Pack(5, obs.ptr(), rewards.ptr(), terminations.ptr(),
                            truncations.ptr(), infos.ptr()));
}

py::object VectorStep::Observations() {
  MakeArrays();
  if (!options_.copy) return client_->views().obs;
  CopyObservations(arrays().obs, options_.wide, obs_);
  return Owned(std::exchange(obs_, nullptr));
}

py::object VectorStep::ResetInfos() const {
  return Infos(arrays().infos, Mask(num_envs(), 0), resetting_);
}

py::object VectorStep::Infos(std::span<const double> rows, const Mask& stepped,
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

void VectorStep::AddFinal(const py::object& infos, const Mask& ended) const {
  const StepArrays& now = arrays();
  const size_t of_each = now.obs_size;
  const py::object observations = Owned(NewArray(
      Descriptor<PyObject*>(), {static_cast<py::ssize_t>(ended.size())}));
  auto* const slots = Data<PyObject*>(observations.ptr());
  for (size_t env = 0; env < ended.size(); ++env) {
    py::object last = py::none();
    if (ended[env] != 0) {
      last = Owned(
          NewArray(options_.wide ? Descriptor<double>() : Descriptor<float>(),
                   {static_cast<py::ssize_t>(of_each)}));
      CopyObservations(now.final_obs.subspan(env * of_each, of_each),
                       options_.wide, last.ptr());
    }
    Py_XSETREF(slots[env], last.release().ptr());
  }
  Set(infos, py::str("final_obs"), observations);
  Set(infos, py::str("_final_obs"), FlagsOf(ended));
  Set(infos, py::str("final_info"), Infos(now.final_infos, ended, ended));
  Set(infos, py::str("_final_info"), FlagsOf(ended));
}

}  // namespace tandem
