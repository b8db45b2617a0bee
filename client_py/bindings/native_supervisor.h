// NativeSupervisor: the Python interface of EngineSide, for the supervisor of a
// region with workers.
//
// Data flow: clients that attach and leave, workers that die -> Next -> the
// caller -> the calls of EngineSide for supervisors.
// Ownership: tandem.workers.supervisor holds one, and one thread calls it. All
// calls need the GIL; Next releases it while it waits.
//
//   NativeSupervisor supervisor("demo", spec, "adaptive");
//   ... start the workers, with supervisor.fd() ...
//   supervisor.ResetWorkers();
//   while (supervisor.Next(1.0, {}) != "workers ready") ...
//   supervisor.Open();

#ifndef TANDEM_CLIENT_PY_BINDINGS_NATIVE_SUPERVISOR_H_
#define TANDEM_CLIENT_PY_BINDINGS_NATIVE_SUPERVISOR_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/memory/region_plan.h"
#include "transport/session/engine_side.h"

namespace tandem {

class NativeSupervisor {
 public:
  // Makes the region, without its name. Raises the errors of
  // EngineSide::Create.
  NativeSupervisor(const std::string& name, const RegionSpec& spec,
                   const std::string& wait);
  NativeSupervisor(const NativeSupervisor&) = delete;
  NativeSupervisor& operator=(const NativeSupervisor&) = delete;

  // Gives the region its name.
  void Open();

  // Waits for the next event. Clients are admitted, and invalid counts
  // answered, without the caller. Looks at the descriptors every few
  // milliseconds. Returns
  //  - "input": one of `fds` is readable, or its other end is closed;
  //  - "workers ready", "workers answered", "worker died", "client left":
  //    as EngineEvent; dead_worker() is the dead one;
  //  - "timed out": `timeout_secs` have passed.
  // Raises what signal handlers raise.
  pybind11::str Next(double timeout_secs, const std::vector<int>& fds);

  void ResetWorkers() { side_->ResetWorkers(std::nullopt); }
  void MessageWorkers() { side_->MessageWorkers(); }
  void StopWorkers() { side_->StopWorkers(); }
  uint32_t dead_worker() const { return side_->dead_worker(); }
  bool ReplaceWorker(uint32_t worker) { return side_->ReplaceWorker(worker); }
  std::string WorkerText(uint32_t worker) const {
    return side_->WorkerText(worker);
  }
  // Tells the client why the region ends: its PeerGone has this text.
  void End(const std::string& text);
  // Removes the region. A second call has no effect; others are illegal.
  void Close() { side_.reset(); }

  // Of the region's file, for workers.
  int fd() const { return side_->region().fd(); }

 private:
  std::optional<EngineSide> side_;
};

// Raises InvalidArgument. `fields` has rows of (role, type, shape, path), with
// the names of field.h.
RegionSpec SpecOfWorkers(uint32_t num_envs, uint32_t num_workers,
                         uint32_t obs_size, uint32_t act_size,
                         const std::string& task,
                         const std::string& description,
                         const pybind11::sequence& fields);

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_NATIVE_SUPERVISOR_H_
