// VectorStep: one step of a vector environment in one call from Python.
//
// Data flow: actions -> the region -> ClientSide::Send; this class makes the
// results' arrays while the environments step -> ClientSide::Recv ->
// Gymnasium's results: observations, float64 rewards, bool flags, a dict of
// infos.
// Ownership: the Python object tandem.SharedMemoryVectorEnv holds one and keeps
// the client alive. All calls need the GIL; calls that wait release it.
//
//   TaskStep step(&client, options);         // environments of an engine
//   py::object results = step.Step(actions);  // what VectorEnv.step returns

#ifndef TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_
#define TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client_py/bindings/native_client.h"
#include "schema/layout/lrbc.h"
#include "transport/session/step_arrays.h"

namespace tandem {

// Legal call order: NativeClient's, and ExpectReset before its SendReset. Every
// call raises by the error table (errors.h). If Send raises, nothing was sent.
// If a wait raises, the exchange is pending. A second thread gets
// ConcurrentUse.
class VectorStep {
 public:
  VectorStep(const VectorStep&) = delete;
  VectorStep& operator=(const VectorStep&) = delete;
  virtual ~VectorStep();

  // Does Send, then Recv.
  pybind11::object Step(pybind11::handle actions);
  void Send(pybind11::handle actions);
  // Steps these environments only, with the region's own actions, which the
  // caller has written. Recv then returns the rows of all environments.
  void SendChosen(const std::vector<int64_t>& env_ids);
  // Returns (obs, rewards, terminations, truncations, infos). All are new
  // objects, except obs without copies. Waits for the client's own time-out if
  // there is none.
  pybind11::object Recv(std::optional<double> timeout_secs = std::nullopt);

  // Call it before the SendReset of the environments in `mask`, bool[num_envs].
  void ExpectReset(const pybind11::array_t<bool>& mask);
  // Returns the reset's (obs, infos).
  pybind11::object ResetResults();

 protected:
  using Mask = std::vector<uint8_t>;

  // `with_mask`: the infos need resetting().
  VectorStep(NativeClient* client, AutoresetMode autoreset, bool with_mask);

  NativeClient& client() { return *client_; }
  size_t num_envs() const { return arrays().num_envs; }
  const StepArrays& arrays() const { return client_->side().arrays(); }
  AutoresetMode autoreset() const { return autoreset_; }
  // The environments that the last exchange resets and does not step, also
  // while it is pending. Unused without `with_mask`.
  const Mask& resetting() const { return resetting_; }
  bool MaySend() const { return !client_->pending() && !client_->closed(); }

 private:
  // Checks actions. Raises InvalidAction.
  virtual void TakeActions(pybind11::handle actions) = 0;
  // Sends the actions that were taken last.
  virtual void PostActions() = 0;
  // Makes an array for the next observations, while the environments step.
  virtual void MakeObservations() {}
  virtual pybind11::object Observations() = 0;
  virtual void CopyRewards(double* to) const = 0;
  virtual pybind11::object StepInfos() = 0;
  virtual pybind11::object ResetInfos() = 0;

  // Returns the environments that the next step resets and does not step.
  // InvalidArgument: autoreset is disabled, and another one of `chosen` (empty:
  // of all) has ended.
  Mask ResetByNextStep(std::span<const int64_t> chosen) const;
  void Sent(Mask resetting);
  void MakeArrays();
  pybind11::object Results();

  NativeClient* const client_;
  const AutoresetMode autoreset_;
  const bool with_mask_;
  Mask resetting_;
  bool resets_only_ = true;  // the last exchange, also while it is pending
  // Arrays for the next results, made while the environments step; or nullptr.
  // No py::object: at exit the interpreter may unwind a waiting daemon thread
  // without the GIL, which the destructor of py::object needs.
  PyObject* rewards_ = nullptr;
  PyObject* terminations_ = nullptr;
  PyObject* truncations_ = nullptr;
};

// Writes 1 where `from` is not 0 into bool[num_envs].
void CopyFlags(std::span<const uint8_t> from, PyObject* to);

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_
