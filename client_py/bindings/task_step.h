// TaskStep: the steps of an engine's environments, whose observations and
// actions are float32 rows. FieldStep derives from it.
//
// Data flow: actions -> float32 -> VectorStep -> observations in the task's
// dtype; the region's columns of infos -> a dict of arrays.
// Ownership: VectorStep's.
//
//   TaskStep step(&client, options);
//   py::object results = step.Step(actions);  // what VectorEnv.step returns

#ifndef TANDEM_CLIENT_PY_BINDINGS_TASK_STEP_H_
#define TANDEM_CLIENT_PY_BINDINGS_TASK_STEP_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client_py/bindings/native_client.h"
#include "client_py/bindings/vector_step.h"
#include "schema/layout/lrbc.h"

namespace tandem {

class TaskStep : public VectorStep {
 public:
  struct Options {
    // Rows of (name, first column, length or None, dtype, whether a reset has
    // it): the fields of tandem.environments.description.InfoField.
    pybind11::sequence infos;
    bool wide;  // observations are float64, otherwise float32
    bool copy;  // otherwise observations are the region's array
    AutoresetMode autoreset;
    std::optional<int64_t> choices;  // the number of discrete actions
    // Returns actions as float32[num_envs, act_size], or raises. Called if the
    // actions have another shape, are out of range, or have another type than
    // float32 and float64 (discrete: int64).
    pybind11::function convert;
  };

  TaskStep(NativeClient* client, Options options);
  ~TaskStep() override;

 private:
  struct InfoField {
    pybind11::str name;
    pybind11::str mask_name;
    size_t first;
    std::optional<size_t> length;
    pybind11::dtype dtype;
    bool at_reset;
  };

  void TakeActions(pybind11::handle actions) override;
  void PostActions() override;
  void MakeObservations() override;
  pybind11::object Observations() override;
  void CopyRewards(double* to) const override;
  pybind11::object StepInfos() override;
  pybind11::object ResetInfos() override;

  // Returns the infos of the environments in `present`. Fields that only a step
  // has are those of the environments in `stepped`.
  pybind11::object Infos(std::span<const double> rows, const Mask& stepped,
                         const Mask& present) const;
  void AddFinal(const pybind11::object& infos, const Mask& ended) const;
  // Returns the last observation of an environment whose episode has ended.
  virtual pybind11::object FinalObservation(size_t env) const;

  const Options options_;
  std::vector<InfoField> infos_;
  // The taken actions: the caller's array, `converted_` or `floats_`.
  std::span<const float> taken_;
  std::vector<float> floats_;
  pybind11::object converted_;
  PyObject* obs_ = nullptr;  // as VectorStep's arrays
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_TASK_STEP_H_
