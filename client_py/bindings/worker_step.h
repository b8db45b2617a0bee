// WorkerStep: the steps of environments in Python, in worker processes.
//
// Data flow: actions -> the fields of the action space -> VectorStep -> the
// fields of the observation space; the workers' info areas -> a dict.
// Ownership: VectorStep's. The arrays of `observations` and `actions` are views
// of the client's region.
//
//   WorkerStep step(&client, options);
//   py::object results = step.Step(actions);  // what VectorEnv.step returns

#ifndef TANDEM_CLIENT_PY_BINDINGS_WORKER_STEP_H_
#define TANDEM_CLIENT_PY_BINDINGS_WORKER_STEP_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <vector>

#include "client_py/bindings/native_client.h"
#include "client_py/bindings/vector_step.h"
#include "schema/layout/lrbc.h"

namespace tandem {

class WorkerStep final : public VectorStep {
 public:
  struct Options {
    pybind11::object observations;  // tandem.spaces.batches.Observations
    pybind11::object actions;       // tandem.spaces.batches.Actions
    pybind11::object infos;         // tandem.workers.infos.VectorInfos
    bool copy;  // otherwise observations are the region's arrays
    AutoresetMode autoreset;
  };

  // Raises InvalidArgument if the region has no rewards as float64.
  WorkerStep(NativeClient* client, const Options& options);
  ~WorkerStep() override;

 private:
  void TakeActions(pybind11::handle actions) override;
  void PostActions() override;
  void MakeObservations() override;
  pybind11::object Observations() override;
  void CopyRewards(double* to) const override;
  pybind11::object StepInfos() override { return read_infos_(); }
  // "env_failed" marks the rows of environments that still await their reset.
  pybind11::object ResetInfos() override;

  const bool copy_;
  const pybind11::object batch_;  // Observations.batch
  const pybind11::object write_;  // Actions.write
  const pybind11::object read_infos_;
  // The space's one field, or None.
  const pybind11::object observation_;
  const pybind11::object action_;
  const std::span<const double> rewards_;
  PyObject* obs_ = nullptr;  // as VectorStep's arrays
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_WORKER_STEP_H_
