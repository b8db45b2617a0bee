// FieldStep: the steps of an engine's environments, whose observations or
// actions are fields.
//
// Data flow: actions -> the fields of the action space -> VectorStep -> the
// fields of the observation space; the rest as TaskStep.
// Ownership: VectorStep's. The arrays of `observations` and `actions` are views
// of the client's region.
//
//   FieldStep step(&client, options);
//   py::object results = step.Step(actions);  // what VectorEnv.step returns

#ifndef TANDEM_CLIENT_PY_BINDINGS_FIELD_STEP_H_
#define TANDEM_CLIENT_PY_BINDINGS_FIELD_STEP_H_

#include <pybind11/pybind11.h>

#include <cstddef>

#include "client_py/bindings/native_client.h"
#include "client_py/bindings/task_step.h"
#include "schema/layout/lrbc.h"

namespace tandem {

class FieldStep final : public TaskStep {
 public:
  struct Options {
    pybind11::sequence infos;       // as TaskStep's
    pybind11::object observations;  // tandem.spaces.batches.Observations
    pybind11::object final_observations;
    pybind11::object actions;  // tandem.spaces.batches.Actions
    bool copy;                 // otherwise observations are the region's arrays
    AutoresetMode autoreset;
  };

  FieldStep(NativeClient* client, const Options& options);

 private:
  void TakeActions(pybind11::handle actions) override;
  void PostActions() override;
  void MakeObservations() override {}
  pybind11::object Observations() override;
  pybind11::object FinalObservation(size_t env) const override;

  const bool copy_;
  const pybind11::object batch_;
  const pybind11::object row_;
  const pybind11::object write_;
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_FIELD_STEP_H_
