// VectorStep: a step of a vector environment in one crossing into C++.
//
// Data flow: actions of any dtype that fits -> float32 -> ClientSide::Send; the
// engine steps while the results' arrays are made -> ClientSide::Recv -> the
// region's arrays in Gymnasium's form: observations in the task's dtype,
// float64 rewards, bool flags, infos under their names.
// Ownership: the Python object tandem.SharedMemoryVectorEnv holds one, which
// keeps the client alive. All calls need the GIL; those that wait release it.
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
// call raises by the error table (errors.h). A call that raises has sent
// nothing, unless it waited: then the exchange is pending. A second thread gets
// ConcurrentUse.
class VectorStep {
 public:
  struct Options {
    // Rows of (name, first column, length or None, dtype, whether a reset gives
    // it), the fields of tandem.environments.description.InfoField.
    pybind11::sequence infos;
    bool wide;  // observations are float64, otherwise float32
    bool copy;  // otherwise observations are the region's own array
    AutoresetMode autoreset;
    std::optional<int64_t> choices;  // of a discrete action
    // Called with actions of another type than float32 and float64 (discrete:
    // int64), of another shape, or out of range. Returns them as
    // float32[num_envs, act_size], or raises.
    pybind11::function convert;
  };

  VectorStep(NativeClient* client, Options options);
  VectorStep(const VectorStep&) = delete;
  VectorStep& operator=(const VectorStep&) = delete;
  ~VectorStep();

  // Send and Recv in one.
  pybind11::object Step(pybind11::handle actions);
  void Send(pybind11::handle actions);
  // (obs, rewards, terminations, truncations, infos), the caller's own but for
  // observations without copy.
  pybind11::object Recv();

  // A reset of the environments in `mask`, bool[num_envs], is to be sent next.
  void ExpectReset(const pybind11::array_t<bool>& mask);
  // (obs, infos) of it.
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
  // Valid until the next call, or for as long as `keeper`.
  std::span<const float> Floats(pybind11::handle actions,
                                pybind11::object* keeper);
  // The environments that the next step resets rather than steps. With
  // autoreset disabled an ended one that is not among them is InvalidArgument.
  Mask ResetByNextStep() const;
  void MakeArrays();
  pybind11::object Results();
  pybind11::object Observations();
  pybind11::object ResetInfos() const;
  // Of the environments in `present`; what a step alone gives, of those in
  // `stepped`.
  pybind11::object Infos(std::span<const double> rows, const Mask& stepped,
                         const Mask& present) const;
  void AddFinal(const pybind11::object& infos, const Mask& ended) const;

  NativeClient* client_;
  Options options_;
  std::vector<InfoField> infos_;
  std::vector<float> floats_;  // converted actions
  // Of the last exchange, also while it is pending: the environments that it
  // resets rather than steps (unused without infos), and whether it steps none.
  Mask resetting_;
  bool resets_only_ = true;
  // Arrays for the next results, made while the engine steps; or nullptr. No
  // py::object: at its exit the interpreter ends a daemon thread in a wait by
  // unwinding it, without the GIL that destructors need. So they lie here.
  PyObject* obs_ = nullptr;
  PyObject* rewards_ = nullptr;
  PyObject* terminations_ = nullptr;
  PyObject* truncations_ = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_VECTOR_STEP_H_
