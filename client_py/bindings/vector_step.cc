#include "client_py/bindings/vector_step.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"
#include "schema/layout/field.h"

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

// Writes 1 where `from` is not 0 into bool[num_envs].
void CopyFlags(std::span<const uint8_t> from, PyObject* to) {
  bool* const flags = Data<bool>(to);
  for (size_t i = 0; i < from.size(); ++i) flags[i] = from[i] != 0;
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

std::span<const py::ssize_t> ShapeOf(const py::object& array) {
  const auto* const proxy = Proxy(array.ptr());
  return {proxy->dimensions, static_cast<size_t>(proxy->nd)};
}

py::ssize_t BytesOf(const py::object& array) {
  return py::reinterpret_borrow<py::array>(array).nbytes();
}

// Copies numbers of type `from`; float32 numbers become float64 if `wide`.
void CopyValues(const char* from, size_t bytes, bool wide, PyObject* to) {
  if (!wide) {
    std::memcpy(Data<char>(to), from, bytes);
    return;
  }
  const auto* const numbers = reinterpret_cast<const float*>(from);
  std::copy_n(numbers, bytes / sizeof(float), Data<double>(to));
}

// The field of rewards; empty: rewards are float32.
std::span<const double> RewardsOf(const StepArrays& arrays) {
  const FieldArray* const field = arrays.Find(FieldRole::kReward, "");
  return field == nullptr ? std::span<const double>()
                          : field->Values<const double>();
}

}  // namespace

VectorStep::VectorStep(NativeClient* client, const Options& options)
    : client_(client),
      has_rows_(options.observations.is_none()),
      observation_array_(
          py::getattr(options.observations, "array", py::none())),
      batch_(py::getattr(options.observations, "batch", py::none())),
      final_row_(py::getattr(options.final_observations, "row", py::none())),
      action_array_(py::getattr(options.actions, "array", py::none())),
      writes_actions_(py::hasattr(options.actions, "write")),
      take_actions_(py::getattr(options.actions, "write", options.actions)),
      wide_(options.wide),
      copy_(options.copy),
      autoreset_(options.autoreset),
      choices_(options.choices),
      resetting_(num_envs(), uint8_t{1}) {
  if (py::hasattr(options.infos, "read")) {
    read_infos_ = options.infos.attr("read");
    rewards_ = RewardsOf(arrays());
  } else {
    AddColumns(options.infos);
  }
}

VectorStep::~VectorStep() {
  for (PyObject* const one :
       {obs_, rewards_array_, terminations_, truncations_}) {
    Py_XDECREF(one);
  }
}

void VectorStep::AddColumns(const py::sequence& rows) {
  for (const py::handle row : rows) {
    const auto [name, first, length, type, at_reset] = row.cast<
        std::tuple<py::str, size_t, std::optional<size_t>, py::dtype, bool>>();
    columns_.push_back({.name = name,
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

py::object VectorStep::Step(py::handle actions) {
  Post(actions, AfterSend::kWaits);
  return Recv();
}

void VectorStep::Post(py::handle actions, AfterSend after) {
  TakeActions(actions);
  // Reads the flags before the exchange: the engine changes them afterwards.
  Mask resetting;
  if (MaySend() &&
      (!columns_.empty() || autoreset_ == AutoresetMode::kDisabled)) {
    resetting = ResetByNextStep({});
  }
  client_->Post(writes_actions_ ? arrays().actions : taken_, after);
  Sent(std::move(resetting));
}

void VectorStep::SendChosen(const std::vector<int64_t>& env_ids) {
  Mask resetting(num_envs(), 1);
  if (MaySend() && !env_ids.empty()) resetting = ResetByNextStep(env_ids);
  client_->PostChosen(env_ids);
  Sent(std::move(resetting));
}

void VectorStep::Sent(Mask resetting) {
  resetting_ = std::move(resetting);
  resets_only_ = false;
}

py::object VectorStep::Recv(std::optional<double> timeout_secs) {
  MakeArrays();
  client_->Await(timeout_secs.value_or(client_->timeout_secs()));
  return Results();
}

void VectorStep::ExpectReset(const py::array_t<bool>& mask) {
  resetting_.assign(mask.data(), mask.data() + mask.size());
  resets_only_ = true;
}

py::object VectorStep::ResetResults() {
  const py::object obs = Observations();
  return Owned(PyTuple_Pack(2, obs.ptr(), ResetInfos().ptr()));
}

VectorStep::Mask VectorStep::ResetByNextStep(
    std::span<const int64_t> chosen) const {
  const StepArrays& now = arrays();
  Mask resets(now.resets.begin(), now.resets.end());
  if (autoreset_ == AutoresetMode::kNextStep) {
    std::ranges::transform(resets, now.dones, resets.begin(), std::bit_or<>());
  }
  if (autoreset_ != AutoresetMode::kDisabled) return resets;
  std::vector<size_t> ended;
  constexpr size_t kMostNamed = 10;
  const size_t count = chosen.empty() ? resets.size() : chosen.size();
  for (size_t i = 0; i < count && ended.size() < kMostNamed; ++i) {
    const size_t env = chosen.empty() ? i : static_cast<size_t>(chosen[i]);
    // PostChosen refuses an invalid one.
    if (env >= resets.size()) continue;
    if (now.dones[env] != 0 && resets[env] == 0) ended.push_back(env);
  }
  if (ended.empty()) return resets;
  RaiseInvalid(
      absl::StrCat("expected no ended episode at a step with autoreset "
                   "disabled, found environments [",
                   absl::StrJoin(ended, ", "),
                   "]; nothing was sent; reset(options={'reset_mask': "
                   "mask}) starts their next"));
}

std::span<const float> VectorStep::RowsOf(py::handle actions) {
  const py::ssize_t envs = static_cast<py::ssize_t>(num_envs());
  const size_t count = arrays().actions.size();
  const py::ssize_t of_each = static_cast<py::ssize_t>(arrays().act_size);
  if (choices_.has_value()) {
    const auto* const values = Values<int64_t>(actions, {envs});
    const auto in_range = [end = *choices_](int64_t value) {
      return value >= 0 && value < end;
    };
    if (values != nullptr && std::all_of(values, values + envs, in_range)) {
      floats_.assign(values, values + envs);
      return floats_;
    }
  } else {
    const auto* const floats = Values<float>(actions, {envs, of_each});
    if (floats != nullptr) {
      return {floats, count};
    }
    const auto* const doubles = Values<double>(actions, {envs, of_each});
    if (doubles != nullptr) {
      // Values out of float32's range become infinities, which Post refuses.
      floats_.resize(count);
      std::transform(doubles, doubles + count, floats_.begin(),
                     [](double value) { return static_cast<float>(value); });
      return floats_;
    }
  }
  converted_ = take_actions_(actions);
  const auto* const floats = Values<float>(converted_, {envs, of_each});
  if (floats == nullptr) {
    throw py::type_error("convert: expected float32[num_envs, act_size]");
  }
  return {floats, count};
}

void VectorStep::TakeActions(py::handle actions) {
  if (!writes_actions_) {
    taken_ = RowsOf(actions);
    return;
  }
  if (!MaySend()) return;  // Post refuses
  if (!action_array_.is_none() &&
      NumpyApi::get().PyArray_Check_(actions.ptr()) &&
      IsPlain(actions.ptr(),
              py::reinterpret_borrow<py::array>(action_array_).dtype().num(),
              ShapeOf(action_array_))) {
    // The caller may have filled the field itself.
    std::memmove(Data<char>(action_array_.ptr()), Data<char>(actions.ptr()),
                 static_cast<size_t>(BytesOf(action_array_)));
    return;
  }
  take_actions_(actions);
}

void VectorStep::MakeArrays() {
  if (copy_ && obs_ == nullptr) {
    const py::object array = ObservationArray();
    if (!array.is_none()) obs_ = NewLike(array, 0);
  }
  const py::ssize_t envs = static_cast<py::ssize_t>(num_envs());
  if (rewards_array_ == nullptr)
    rewards_array_ = NewArray(Descriptor<double>(), {envs});
  for (PyObject** const flags : {&terminations_, &truncations_}) {
    if (*flags == nullptr) *flags = NewArray(Descriptor<bool>(), {envs});
  }
}

py::object VectorStep::Results() {
  const StepArrays& now = arrays();
  const py::object obs = Observations();
  const py::object rewards = Owned(std::exchange(rewards_array_, nullptr));
  const py::object terminations = Owned(std::exchange(terminations_, nullptr));
  const py::object truncations = Owned(std::exchange(truncations_, nullptr));
  py::object infos;
  if (resets_only_) {
    std::fill_n(Data<double>(rewards.ptr()), num_envs(), 0.0);
    std::fill_n(Data<bool>(terminations.ptr()), num_envs(), false);
    std::fill_n(Data<bool>(truncations.ptr()), num_envs(), false);
    infos = ResetInfos();
  } else {
    double* const to = Data<double>(rewards.ptr());
    if (rewards_.empty()) {
      std::ranges::copy(now.rewards, to);
    } else {
      std::ranges::copy(rewards_, to);
    }
    CopyFlags(now.terminateds, terminations.ptr());
    CopyFlags(now.truncateds, truncations.ptr());
    infos = StepInfos();
  }
  return Owned(PyTuple_Pack(5, obs.ptr(), rewards.ptr(), terminations.ptr(),
                            truncations.ptr(), infos.ptr()));
}

// A new array of the same shape, without the first dimensions.
PyObject* VectorStep::NewLike(const py::object& array, size_t skipped) const {
  return NewArray(wide_ ? Descriptor<double>() : Proxy(array.ptr())->descr,
                  ShapeOf(array).subspan(skipped));
}

py::object VectorStep::ObservationArray() const {
  if (!has_rows_) return observation_array_;
  return client_->views().obs;
}

py::object VectorStep::Observations() {
  const py::object array = ObservationArray();
  if (array.is_none()) return batch_(py::arg("copy") = copy_);
  if (!copy_) return array;
  if (obs_ == nullptr) obs_ = NewLike(array, 0);  // after a reset
  CopyValues(Data<char>(array.ptr()), static_cast<size_t>(BytesOf(array)),
             wide_, obs_);
  return Owned(std::exchange(obs_, nullptr));
}

py::object VectorStep::FinalObservation(size_t env) const {
  if (!has_rows_) return final_row_(env);
  const py::object array = client_->views().final_obs;
  const py::object last = Owned(NewLike(array, 1));
  const size_t row_bytes = static_cast<size_t>(BytesOf(array)) / num_envs();
  CopyValues(Data<char>(array.ptr()) + env * row_bytes, row_bytes, wide_,
             last.ptr());
  return last;
}

py::object VectorStep::StepInfos() {
  if (read_infos_) return read_infos_();
  const StepArrays& now = arrays();
  const bool any_ended =
      autoreset_ == AutoresetMode::kSameStep && Any(now.dones);
  py::object infos;
  if (columns_.empty()) {
    infos = py::dict();
  } else {
    Mask stepped = resetting_;
    if (any_ended) {
      std::ranges::transform(stepped, now.dones, stepped.begin(),
                             std::bit_or<>());
    }
    infos = Columns(now.infos, Not(std::move(stepped)), Mask(num_envs(), 1));
  }
  if (any_ended) AddFinal(infos, Mask(now.dones.begin(), now.dones.end()));
  return infos;
}

// "env_failed" marks the rows of environments that still await their reset.
py::object VectorStep::ResetInfos() {
  if (!read_infos_) {
    return Columns(arrays().infos, Mask(num_envs(), 0), resetting_);
  }
  py::object infos = read_infos_();
  const FieldArray* const field = arrays().Find(FieldRole::kStatus, "");
  if (field == nullptr) return infos;
  py::array_t<bool> failed(static_cast<py::ssize_t>(num_envs()));
  std::ranges::transform(
      field->Values<const uint8_t>(), failed.mutable_data(), [](uint8_t value) {
        return value == static_cast<uint8_t>(EnvStatus::kRaised);
      });
  if (failed.attr("any")().cast<bool>()) {
    infos["env_failed"] = failed;
    infos["_env_failed"] = failed.attr("copy")();
  }
  return infos;
}

py::object VectorStep::Columns(std::span<const double> rows,
                               const Mask& stepped, const Mask& present) const {
  py::object infos = py::dict();
  for (const InfoColumns& field : columns_) {
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
  Set(infos, py::str("final_info"),
      Columns(arrays().final_infos, ended, ended));
  Set(infos, py::str("_final_info"), FlagsOf(ended));
}

}  // namespace tandem
