// NativeWorker: the Python interface of WorkerSide, for a worker process.
//
// Data flow: the client's actions -> Serve -> EnvRows, which steps the
// environments -> the client, when all workers have finished. Other events ->
// the caller.
// Ownership: tandem.workers.worker holds one. All calls need the GIL; Serve
// releases it while it waits. The views share the mapping and may outlive it.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

#include "client_py/bindings/env_rows.h"
#include "transport/worker_side.h"

namespace tandem {

class NativeWorker {
 public:
  // Takes the worker's slot. `fd` is the region's; the caller may close it
  // afterwards. `reset_options` returns what env.reset gets as `options` in an
  // exchange or lane that only resets. Raises the errors of WorkerSide::Attach.
  NativeWorker(int fd, uint32_t worker, const std::string& wait,
               pybind11::function reset_options);
  NativeWorker(const NativeWorker&) = delete;
  NativeWorker& operator=(const NativeWorker&) = delete;

  // Executes exchanges and lanes on `rows`, which must be this worker's, until
  // another event comes. An order to reset is acknowledged without a reset: the
  // client's first exchange resets all environments. Returns
  //  - "message": the supervisor has sent something by other means: handle it,
  //    then call Acknowledge;
  //  - "stop": the worker ends;
  //  - "supervisor gone": the same, without an order;
  //  - "timed out": `timeout_secs` have passed.
  // Raises what EnvRows::Run and signal handlers raise.
  pybind11::str Serve(EnvRows* rows, double timeout_secs);
  void Acknowledge() { side_.Acknowledge(); }

  uint32_t first_env() const { return side_.first_env(); }
  uint32_t num_envs() const { return side_.num_envs(); }
  // Whether another process had the slot, and has not left it in order.
  bool restarted() const { return restarted_; }
  // Of all environments, by name: rewards, dones, ...
  const pybind11::dict& arrays() const { return arrays_; }
  // Of all environments: (role, path) -> array.
  const pybind11::dict& fields() const { return fields_; }
  // uint32[1] in the slot: the environment in work, for observers.
  const pybind11::array& current() const { return current_; }

 private:
  void Advance(EnvRows* rows);

  WorkerSide side_;
  const bool restarted_;
  const pybind11::dict arrays_;
  const pybind11::dict fields_;
  const pybind11::array current_;
  const pybind11::function reset_options_;
};

}  // namespace tandem
