// VectorStep: one step of a vector environment in one call from Python.
//
// Data flow: actions -> float32 -> ClientSide::Send; this class makes the
// results' arrays while the engine steps -> ClientSide::Recv -> Gymnasium's
// results: observations in the task's dtype, float64 rewards, bool flags, a
// dict of infos.
// Ownership: the Python object tandem.SharedMemoryVectorEnv holds one and keeps
// the client alive. All calls need the GIL; calls that wait release it.
//
//   VectorStep step(&client, options);
//   py::object results = step.Step(actions);  // what VectorEnv.step returns

#ifndef TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_
#define TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

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

  VectorStep(NativeClient* client, Options options);
  VectorStep(const VectorStep&) = delete;
  VectorStep& operator=(const VectorStep&) = delete;
  ~VectorStep();

  // Does Send, then Recv.
  pybind11::object Step(pybind11::handle actions);
  void Send(pybind11::handle actions);
  // Returns (obs, rewards, terminations, truncations, infos). All are new
  // objects, except obs without Options::copy.
  pybind11::object Recv();

  // Call it before the SendReset of the environments in `mask`, bool[num_envs].
  void ExpectReset(const pybind11::array_t<bool>& mask);
  // Returns the reset's (obs, infos).
  pybind11::object ResetResults();

 private:
  using Mask = std::vector<uint8_t>;
  struct InfoField {
    pybind11::str name;
    pybind11::str mask_name;
    size_t first;
    std::optional<size_t> length;
    pybind11::dtype dtype;
    bool at_reset;
  };

  size_t num_envs() const { return arrays().num_envs; }
  const StepArrays& arrays() const { return client_->side().arrays(); }
  // The result is valid until the next call or while `keeper` lives.
  std::span<const float> Floats(pybind11::handle actions,
                                pybind11::object* keeper);
  // Returns the environments that the next step resets and does not step.
  // InvalidArgument: autoreset is disabled, and another environment has ended.
  Mask ResetByNextStep() const;
  void MakeArrays();
  pybind11::object Results();
  pybind11::object Observations();
  pybind11::object ResetInfos() const;
  // Returns the infos of the environments in `present`. Fields that only a step
  // has are those of the environments in `stepped`.
  pybind11::object Infos(std::span<const double> rows, const Mask& stepped,
                         const Mask& present) const;
  void AddFinal(const pybind11::object& infos, const Mask& ended) const;

  NativeClient* client_;
  Options options_;
  std::vector<InfoField> infos_;
  std::vector<float> floats_;  // converted actions
  // The last exchange, also while it is pending: the environments that it
  // resets and does not step (unused without infos), and whether it steps none.
  Mask resetting_;
  bool resets_only_ = true;
  // Arrays for the next results, made while the engine steps; or nullptr. No
  // py::object: at exit the interpreter may unwind a waiting daemon thread
  // without the GIL, which the destructor of py::object needs.
  PyObject* obs_ = nullptr;
  PyObject* rewards_ = nullptr;
  PyObject* terminations_ = nullptr;
  PyObject* truncations_ = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_
