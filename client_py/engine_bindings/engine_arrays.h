// EngineArrays: the arrays of an engine's region for Python, made once, and
// copies for work without an exchange.
//
// Data flow: a step: the region, in place. Work without an exchange, such as a
// real-time step: the host's private arrays -> copies -> the engine -> copies
// -> the host's arrays.
// Arrays on a GPU are the host's, for each kind of work.
// Ownership: PythonEngine owns it. Python may keep the arrays: those of the
// region keep it mapped, and the copies belong to Python.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>

#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"

namespace tandem {

// All calls need the GIL, the destructor included.
class EngineArrays {
 public:
  // `make`: Adaptor.arrays, which returns the object for the engine.
  EngineArrays(const EngineHost& host, pybind11::object make);

  // Returns the object with the arrays for this work, borrowed.
  PyObject* Begin(const StepIo& io);
  PyObject* Begin(const ResetIo& io);
  // After the engine's work: copies results to `io`, unless they are there.
  void End(const StepIo& io);
  void End(const ResetIo& io);

 private:
  struct Set {
    pybind11::array_t<float> obs;
    pybind11::array_t<float> actions;
    pybind11::array_t<float> rewards;
    pybind11::array_t<uint8_t> terminateds;
    pybind11::array_t<uint8_t> truncateds;
    pybind11::array_t<double> infos;
    pybind11::object object;  // of Python
  };

  bool IsRegion(const float* obs) const { return obs == region_obs_; }
  Set& Copies();
  void Finish(Set* set, const pybind11::dict& fields,
              const pybind11::array_t<uint8_t>& images) const;

  const uint32_t num_envs_;
  const uint32_t obs_size_;
  const uint32_t act_size_;
  const uint32_t info_size_;
  const float* const region_obs_;
  pybind11::object make_;
  pybind11::object cuda_;  // of all sets; None: none
  Set region_;
  std::optional<Set> copies_;  // made at first use
};

}  // namespace tandem
