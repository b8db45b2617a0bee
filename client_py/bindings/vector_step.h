// VectorStep: one step of a vector environment in one call from Python, of an
// engine's environments or of those in worker processes.
//
// Data flow: actions -> the region -> ClientSide::Send; this class makes the
// results' arrays while the environments step -> ClientSide::Recv ->
// Gymnasium's results: observations, float64 rewards, bool flags, a dict of
// infos.
// Ownership: the Python object tandem.SharedMemoryVectorEnv holds one and keeps
// the client alive. The arrays of its options are views of the client's region.
// All calls need the GIL; calls that wait release it.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client_py/bindings/native_client.h"
#include "schema/layout/lrbc.h"
#include "transport/step_arrays.h"

namespace tandem {

// Legal call order: NativeClient's, and ExpectReset before its SendReset. Every
// call raises by the error table (errors.h). If Send raises, nothing was sent.
// If a wait raises, the exchange is pending. A second thread gets
// ConcurrentUse.
class VectorStep {
 public:
  struct Options {
    // tandem.spaces.batches.Observations of the region's fields; None: its
    // float32 rows. The final ones: None for rows, and if the infos include
    // them.
    pybind11::object observations;
    pybind11::object final_observations;
    // Fields: tandem.spaces.batches.Actions, which writes them into the region.
    // Float32 rows: a function that returns actions as float32[num_envs,
    // act_size], or raises. It is called if they have another shape, are out of
    // range, or have another type than float32 and float64 (discrete: int64).
    pybind11::object actions;
    // tandem.workers.infos.VectorInfos; or rows of (name, first column, length
    // or None, dtype, whether a reset has it), the fields of
    // tandem.environments.description.InfoField.
    pybind11::object infos;
    bool wide = false;  // an array of float32 observations becomes float64
    bool copy = true;   // otherwise observations are the region's arrays
    AutoresetMode autoreset = AutoresetMode::kSameStep;
    std::optional<int64_t> choices = {};  // of rows: discrete actions
  };

  VectorStep(NativeClient* client, const Options& options);
  VectorStep(const VectorStep&) = delete;
  VectorStep& operator=(const VectorStep&) = delete;
  ~VectorStep();

  // Does Send, then Recv.
  pybind11::object Step(pybind11::handle actions);
  void Send(pybind11::handle actions) { Post(actions, AfterSend::kComputes); }
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

 private:
  using Mask = std::vector<uint8_t>;
  struct InfoColumns {
    pybind11::str name;
    pybind11::str mask_name;
    size_t first;
    std::optional<size_t> length;
    pybind11::dtype dtype;
    bool at_reset;
  };

  size_t num_envs() const { return arrays().num_envs; }
  const StepArrays& arrays() const { return client_->side().arrays(); }
  bool MaySend() const { return !client_->pending() && !client_->closed(); }

  void Post(pybind11::handle actions, AfterSend after);
  void AddColumns(const pybind11::sequence& rows);
  // Raises InvalidAction. Fields are written in place, rows are checked.
  void TakeActions(pybind11::handle actions);
  std::span<const float> RowsOf(pybind11::handle actions);
  // Returns the environments that the next step resets and does not step.
  // InvalidArgument: autoreset is disabled, and another one of `chosen` (empty:
  // of all) has ended.
  Mask ResetByNextStep(std::span<const int64_t> chosen) const;
  void Sent(Mask resetting);
  void MakeArrays();
  pybind11::object Results();
  // The rows, of the present region; or the space's one field, or None.
  pybind11::object ObservationArray() const;
  PyObject* NewLike(const pybind11::object& array, size_t skipped_dims) const;
  pybind11::object Observations();
  // Returns the last observation of an environment whose episode has ended.
  pybind11::object FinalObservation(size_t env) const;
  pybind11::object StepInfos();
  pybind11::object ResetInfos();
  // Returns the columns of the environments in `present`. Those that only a
  // step has are of the environments in `stepped`.
  pybind11::object Columns(std::span<const double> rows, const Mask& stepped,
                           const Mask& present) const;
  void AddFinal(const pybind11::object& infos, const Mask& ended) const;

  NativeClient* const client_;
  const bool has_rows_;                       // of observations
  const pybind11::object observation_array_;  // the space's one field, or None
  const pybind11::object batch_;              // Observations.batch, or None
  const pybind11::object final_row_;          // Observations.row, or None
  const pybind11::object action_array_;       // the space's one field, or None
  const bool writes_actions_;                 // into fields
  const pybind11::object take_actions_;  // Actions.write, or Options::actions
  pybind11::object read_infos_;          // null: columns
  std::vector<InfoColumns> columns_;
  std::span<const double> rewards_;  // empty: those of StepArrays
  const bool wide_;
  const bool copy_;
  const AutoresetMode autoreset_;
  const std::optional<int64_t> choices_;

  // Rows of actions: the caller's array, `converted_` or `floats_`.
  std::span<const float> taken_;
  std::vector<float> floats_;
  pybind11::object converted_;
  // The environments that the last exchange resets and does not step, also
  // while it is pending. Unused without columns.
  Mask resetting_;
  bool resets_only_ = true;  // the last exchange, also while it is pending
  // Arrays for the next results, made while the environments step; or nullptr.
  // No py::object: at exit the interpreter may unwind a waiting daemon thread
  // without the GIL, which the destructor of py::object needs.
  PyObject* obs_ = nullptr;
  PyObject* rewards_array_ = nullptr;
  PyObject* terminations_ = nullptr;
  PyObject* truncations_ = nullptr;
};

}  // namespace tandem
