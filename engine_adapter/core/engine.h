// Engine: what an engine implements to be driven by a Tandem client.
//
// Data flow: the host picks what is reset and what is stepped; the engine
// writes straight into the region's arrays. Ownership: the engine's author; the
// host calls, from one thread at a time.
//
//   class MyEngine final : public Engine {
//     const EngineSchema& schema() const override { return schema_; }
//     absl::Status Reset(std::span<const ResetRequest> requests,
//                        const ResetIo& io) override;
//     absl::Status Step(std::span<const uint32_t> envs,
//                       const StepIo& io) override;
//   };

#ifndef TANDEM_ENGINE_ADAPTER_CORE_ENGINE_H_
#define TANDEM_ENGINE_ADAPTER_CORE_ENGINE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/task_description.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/ports/engine_ports.h"

namespace tandem {

// Constant in the life of an engine.
struct EngineSchema {
  std::string task;       // for people, and for reconnects; at most 63 bytes
  uint32_t num_envs = 0;  // at least 1, as the sizes
  uint32_t obs_size = 0;  // float32 values per environment
  uint32_t act_size = 0;
  TaskDescription description = {};
  // For people: obs_size and act_size names, or none.
  std::vector<std::string> observation_names = {};
  std::vector<std::string> action_names = {};
};

struct ResetRequest {
  uint32_t env;
  // Given: the environment's random stream starts again from it. Else it goes
  // on.
  std::optional<uint64_t> seed;
};

// The arrays of all environments; environment i's part begins at i times the
// row's length. They lie in memory shared with the client: actions may hold
// anything, NaN included, and what was written may be scribbled over before it
// is read again, so keep your own copy of what you depend on.
struct StepIo {
  std::span<const float> actions;  // [num_envs, act_size]
  std::span<float> obs;            // [num_envs, obs_size]
  std::span<float> rewards;        // [num_envs]
  std::span<uint8_t> terminateds;  // [num_envs], 0 or 1
  std::span<uint8_t> truncateds;   // [num_envs], 0 or 1
  std::span<double> infos = {};    // [num_envs, info_size]
};

// The same, for a reset.
struct ResetIo {
  std::span<float> obs;     // [num_envs, obs_size]
  std::span<double> infos;  // [num_envs, info_size]
};

// An error from Reset or Step reaches the client as EngineFailed with its text;
// the host goes on serving. So does an exception derived from std::exception.
// Neither call may allocate if steps are to stay free of allocations.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineSchema& schema() const = 0;

  // Starts a new episode in each of these environments (each named once) and
  // writes its row of obs, and of infos what is at_reset; touches no other row.
  virtual absl::Status Reset(std::span<const ResetRequest> requests,
                             const ResetIo& io) = 0;

  // Steps each of these environments (each named once, ascending) once by its
  // row of actions and writes its rows of all other arrays; touches no other.
  // Ended episodes go on until they are reset: the host decides when.
  virtual absl::Status Step(std::span<const uint32_t> envs,
                            const StepIo& io) = 0;

  // The client has left: what its commands changed is as it was when the engine
  // was made (contracts, controls, moved things, marks). Reset follows, for all
  // environments.
  virtual void ClearClientState() {}

  // What draws the environments for viewers, or nullptr: this engine draws
  // none. The engine's own, and the same each time.
  virtual FrameSource* frames() { return nullptr; }
  // The same for the observations' images.
  virtual FrameSource* images() { return nullptr; }

  // What the services stand on. The engine's own, and the same each time; the
  // thread that steps calls them between exchanges.
  virtual EnginePorts ports() { return {}; }

  // Seconds of simulated time in a step; 0: this engine does not say.
  virtual double step_secs() const { return 0; }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_ENGINE_H_
