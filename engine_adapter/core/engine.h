// Engine: the interface that an engine implements to serve a Tandem client.
//
// Data flow: the host selects the environments to reset and to step; the engine
// writes its results into the region's arrays.
// Ownership: the program that creates the engine owns it. The host calls it,
// from one thread at a time.
//
//   class MyEngine final : public Engine {
//     const EngineSchema& schema() const override { return schema_; }
//     absl::Status Reset(std::span<const ResetRequest> requests,
//                        const ResetIo& io) override;
//     absl::Status Step(std::span<const uint32_t> envs,
//                       const StepIo& io) override;
//   };
//
// An engine that steps in a loop of its own, such as a game engine, derives
// from EngineBase instead, and takes its work by EngineHost::Next.

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

// The schema does not change while the engine exists.
struct EngineSchema {
  std::string task;       // at most 63 bytes; a reconnect compares it
  uint32_t num_envs = 0;  // at least 1
  uint32_t obs_size = 0;  // float32 values per environment; at least 1
  uint32_t act_size = 0;  // as obs_size
  TaskDescription description = {};
  // For display: a name for each of the obs_size and act_size values, or none.
  std::vector<std::string> observation_names = {};
  std::vector<std::string> action_names = {};
};

struct ResetRequest {
  uint32_t env;
  // With a seed, the environment's random stream starts again from the seed.
  // Without one, the stream continues.
  std::optional<uint64_t> seed;
};

// The arrays of all environments. The row of environment i begins at i times
// the row's length. The client shares this memory: actions may hold any value,
// NaN included. The client may overwrite a result before the engine reads it
// again. So an engine keeps its own copy of values that it reads later.
struct StepIo {
  std::span<const float> actions;  // [num_envs, act_size]
  std::span<float> obs;            // [num_envs, obs_size]
  std::span<float> rewards;        // [num_envs]
  std::span<uint8_t> terminateds;  // [num_envs], 0 or 1
  std::span<uint8_t> truncateds;   // [num_envs], 0 or 1
  std::span<double> infos = {};    // [num_envs, info_size]
};

// The arrays for a reset; StepIo's rules apply.
struct ResetIo {
  std::span<float> obs;     // [num_envs, obs_size]
  std::span<double> infos;  // [num_envs, info_size]
};

// A reset or a step that the host needs, often a part of an exchange. Exactly
// one of `resets` and `steps` is not empty: the engine does what Engine::Reset
// or Engine::Step says, with these arguments.
struct EngineWork {
  std::span<const ResetRequest> resets;
  ResetIo reset_io;
  std::span<const uint32_t> steps;
  StepIo step_io;
};

// What the host needs to know of any engine.
class EngineBase {
 public:
  virtual ~EngineBase() = default;

  virtual const EngineSchema& schema() const = 0;

  // The host calls this when a client leaves or attaches. Undoes the effects of
  // the client's RPCs: randomisation contracts, control values, moved entities,
  // debug marks. The engine is then as it was after construction. After this
  // call the host resets all environments.
  virtual void ClearClientState() {}

  // Returns the source that renders the environments for viewers, or nullptr if
  // the engine renders none. The engine owns it, and returns the same pointer
  // each time.
  virtual FrameSource* frames() { return nullptr; }
  // The source of the observations' images; the rules of frames() apply.
  virtual FrameSource* images() { return nullptr; }

  // Returns the interfaces that the RPC services use. The engine owns them, and
  // returns the same pointers each time. The stepping thread calls them between
  // exchanges.
  virtual EnginePorts ports() { return {}; }

  // Simulated seconds per step; 0 if unknown.
  virtual double step_secs() const { return 0; }
};

// An engine that resets and steps when the host calls it. If Reset or Step
// returns an error, the client gets EngineFailed with the error's text, and the
// host continues to serve. An exception derived from std::exception has the
// same effect. The host allocates nothing in a step, so steps are free of
// allocations if Reset and Step are.
class Engine : public EngineBase {
 public:
  // Starts a new episode in each of the requested environments; `requests` has
  // each at most once. Writes the row of obs of each, and those of its infos
  // whose description has at_reset = true. Writes no other row.
  virtual absl::Status Reset(std::span<const ResetRequest> requests,
                             const ResetIo& io) = 0;

  // Steps each of these environments once, with its row of actions. `envs` is
  // ascending, without duplicates. Writes their rows of obs, rewards,
  // terminateds, truncateds and infos, and no other row. After the end of an
  // episode the environment continues until the host resets it.
  virtual absl::Status Step(std::span<const uint32_t> envs,
                            const StepIo& io) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_ENGINE_H_
