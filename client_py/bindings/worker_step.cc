#include "client_py/bindings/worker_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"
#include "schema/layout/field.h"
#include "transport/session/step_arrays.h"

namespace tandem {
namespace py = pybind11;
namespace {

std::span<const double> RewardsOf(const StepArrays& arrays) {
  const FieldArray* const field = arrays.Find(FieldRole::kReward, "");
  if (field == nullptr || field->type != FieldType::kFloat64 ||
      !field->shape.empty()) {
    Raise(MakeError(ErrorCode::kInvalidArgument,
                    "expected a region with a field of rewards, float64[], "
                    "found none"),
          "");
  }
  return field->Values<const double>();
}

std::span<const py::ssize_t> ShapeOf(const py::object& array) {
  const auto* const proxy = Proxy(array.ptr());
  return {proxy->dimensions, static_cast<size_t>(proxy->nd)};
}

py::ssize_t BytesOf(const py::object& array) {
  return py::reinterpret_borrow<py::array>(array).nbytes();
}

}  // namespace

WorkerStep::WorkerStep(NativeClient* client, const Options& options)
    : VectorStep(client, options.autoreset, /*with_mask=*/false),
      copy_(options.copy),
      batch_(options.observations.attr("batch")),
      write_(options.actions.attr("write")),
      read_infos_(options.infos.attr("read")),
      observation_(options.observations.attr("array")),
      action_(options.actions.attr("array")),
      rewards_(RewardsOf(arrays())) {}

WorkerStep::~WorkerStep() { Py_XDECREF(obs_); }

// Writes them into the region; PostActions sends what is there.
void WorkerStep::TakeActions(py::handle actions) {
  if (!MaySend()) return;  // Post refuses
  if (!action_.is_none() && NumpyApi::get().PyArray_Check_(actions.ptr()) &&
      IsPlain(actions.ptr(),
              py::reinterpret_borrow<py::array>(action_).dtype().num(),
              ShapeOf(action_))) {
    // The caller may have filled the field itself.
    std::memmove(Data<char>(action_.ptr()), Data<char>(actions.ptr()),
                 static_cast<size_t>(BytesOf(action_)));
    return;
  }
  write_(actions);
}

void WorkerStep::PostActions() { client().Post(arrays().actions); }

void WorkerStep::MakeObservations() {
  if (!copy_ || observation_.is_none() || obs_ != nullptr) return;
  obs_ = NewArray(py::reinterpret_borrow<py::array>(observation_).dtype().ptr(),
                  ShapeOf(observation_));
}

py::object WorkerStep::Observations() {
  if (observation_.is_none()) return batch_(py::arg("copy") = copy_);
  if (!copy_) return observation_;
  MakeObservations();
  std::memcpy(Data<char>(obs_), Data<char>(observation_.ptr()),
              static_cast<size_t>(BytesOf(observation_)));
  return Owned(std::exchange(obs_, nullptr));
}

py::object WorkerStep::ResetInfos() {
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

void WorkerStep::CopyRewards(double* to) const {
  std::ranges::copy(rewards_, to);
}

}  // namespace tandem
