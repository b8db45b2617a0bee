#include "client_py/bindings/vector_step.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"

namespace tandem {
namespace py = pybind11;

void CopyFlags(std::span<const uint8_t> from, PyObject* to) {
  bool* const flags = Data<bool>(to);
  for (size_t i = 0; i < from.size(); ++i) flags[i] = from[i] != 0;
}

VectorStep::VectorStep(NativeClient* client, AutoresetMode autoreset,
                       bool with_mask)
    : client_(client),
      autoreset_(autoreset),
      with_mask_(with_mask),
      resetting_(num_envs(), uint8_t{1}) {}

VectorStep::~VectorStep() {
  for (PyObject* const one : {rewards_, terminations_, truncations_}) {
    Py_XDECREF(one);
  }
}

py::object VectorStep::Step(py::handle actions) {
  Send(actions);
  return Recv();
}

void VectorStep::Send(py::handle actions) {
  TakeActions(actions);
  // Reads the flags before the exchange: the engine changes them afterwards.
  Mask resetting;
  if (MaySend() && (with_mask_ || autoreset_ == AutoresetMode::kDisabled)) {
    resetting = ResetByNextStep({});
  }
  PostActions();
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
  MakeObservations();
  const py::ssize_t envs = static_cast<py::ssize_t>(num_envs());
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
    CopyRewards(Data<double>(rewards.ptr()));
    CopyFlags(now.terminateds, terminations.ptr());
    CopyFlags(now.truncateds, truncations.ptr());
    infos = StepInfos();
  }
  return Owned(PyTuple_Pack(5, obs.ptr(), rewards.ptr(), terminations.ptr(),
                            truncations.ptr(), infos.ptr()));
}

}  // namespace tandem
