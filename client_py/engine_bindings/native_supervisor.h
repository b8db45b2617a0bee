// NativeSupervisor: the Python interface of SupervisorHost, for the supervisor
// of a region with workers.
//
// Data flow: clients that attach and leave, workers that die -> Next -> the
// caller -> the calls of SupervisorSide.
// Ownership: tandem.workers.supervisor holds one, and one thread calls it. All
// calls need the GIL; Next releases it while it waits.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "engine_adapter/supervisor_host.h"
#include "transport/frame_geometry.h"
#include "transport/region_spec.h"

namespace tandem {

// WorkersSceneSpec's fields, in their order.
using SceneOfWorkers =
    std::tuple<pybind11::array_t<uint8_t>, uint32_t, std::string, std::string>;

// After Close, all methods but Close raise ClientClosed.
class NativeSupervisor {
 public:
  // Makes the region, without its name. Raises the errors of
  // SupervisorHost::Create.
  NativeSupervisor(const std::string& name, const RegionSpec& spec,
                   std::optional<SceneOfWorkers> scene);
  NativeSupervisor(const NativeSupervisor&) = delete;
  NativeSupervisor& operator=(const NativeSupervisor&) = delete;

  // Gives the region its name.
  void Open();

  // Waits for the next event. Clients are admitted, invalid counts and RPCs
  // answered, and attendants served, without the caller. Returns
  //  - "input": `input` is readable, as SupervisorHost::WatchInput; -1: none;
  //  - "workers ready", "workers answered", "worker died", "client left":
  //    as SupervisorEvent; dead_worker() is the dead one;
  //  - "frame wanted": as SupervisorEvent: call PublishFrame, then AnswerFrame;
  //  - "timed out": `timeout_secs` have passed.
  // Raises what signal handlers raise.
  pybind11::str Next(double timeout_secs, int input);

  void ResetWorkers() { host().ResetWorkers(); }
  void MessageWorkers() { host().MessageWorkers(); }
  void StopWorkers() { host().StopWorkers(); }
  uint32_t dead_worker() const { return host().dead_worker(); }
  bool ReplaceWorker(uint32_t worker) { return host().ReplaceWorker(worker); }
  std::string WorkerText(uint32_t worker) const {
    return host().WorkerText(worker);
  }
  // Tells the client why the region ends: its PeerGone has this text.
  void End(const std::string& text);
  // Removes the region. A second call has no effect.
  void Close() { host_.reset(); }

  // Whether a viewer reads the region's frames; false also without frames. One
  // system call.
  bool FramesWatched() const { return host().FramesWatched(); }
  // Copies a frame, uint8[height, width, 3], into the region's ring. Legal if
  // the region has frames of this size.
  void PublishFrame(
      const pybind11::array_t<uint8_t, pybind11::array::c_style>& frame,
      double last_reward, double rolling_return, double step_rate_hz,
      const std::string& metadata);
  // The newest frame answers the client's last request.
  void AnswerFrame() { host().AnswerFrame(); }
  // These two as SupervisorHost's.
  uint64_t answered_at() const { return host().answered_at(); }
  uint64_t steps() const { return host().steps(); }

  // Of the region's file, for workers.
  int fd() const { return host().fd(); }

 private:
  // Raises ClientClosed.
  SupervisorHost& host() const;

  const std::string name_;
  const std::optional<SceneOfWorkers> scene_;  // host_ uses its memory
  std::unique_ptr<SupervisorHost> host_;
};

// Raises InvalidArgument. `fields` has rows of (role, type, shape, path), with
// the names of field.h; `frames` of capacity 0 are none.
RegionSpec SpecOfWorkers(uint32_t num_envs, uint32_t num_workers,
                         uint32_t obs_size, uint32_t act_size,
                         const std::string& task,
                         const pybind11::sequence& fields,
                         const FrameGeometry& frames);

}  // namespace tandem
