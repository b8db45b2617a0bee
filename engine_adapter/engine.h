// Engine: the interface that an engine implements to serve a Tandem client.
//
// Data flow: the host selects the environments to reset and to step; the engine
// writes its results into the region's arrays.
// Ownership: the program that creates the engine owns the engine. The host
// calls the engine, from one thread at a time.
//
//   class MyEngine final : public Engine {
//     const EngineSchema& schema() const override { return schema_; }
//     absl::Status Reset(std::span<const ResetRequest> requests,
//                        const ResetIo& io) override;
//     absl::Status Step(std::span<const uint32_t> envs,
//                       const StepIo& io) override;
//   };
//
// An engine derives from Engine or from EngineBase:
//
//  the loop belongs to  a step takes   class        methods of EngineHost
//  the host             -              Engine       Run, or Start and Stop
//  the engine           one tick       Engine       Poll, in each tick
//  the engine           several ticks  EngineBase   Next and Done
//
// A tick is one iteration of the engine's own loop, such as a game's frame.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/scene_source.h"
#include "engine_adapter/task_description.h"
#include "transport/region_spec.h"
#include "transport/step_arrays.h"

namespace tandem {

// Arrays in the memory of a GPU, which the host allocates and the engine
// writes: observations, rewards and, if it has a size, images. Or images alone,
// in memory that the engine has exported itself.
struct GpuSchema {
  int cuda_device = 0;  // the number of the device
  // Whether the engine also writes the observations of the region. If not, the
  // engine cannot serve without the device.
  bool fills_cpu = true;
  uint32_t image_width = 0;  // pixels; 0: no images
  uint32_t image_height = 0;
  // The memory of these images. The engine has waited for its GPU when a reset
  // or a step is done. cuda_device and fills_cpu keep their defaults.
  std::optional<GpuMemory> memory = {};
};

// The schema does not change while the engine exists.
struct EngineSchema {
  std::string task;       // at most 63 bytes; a reconnect compares it
  uint32_t num_envs = 0;  // at least 1
  // float32 values per environment; at least 1. 0: the observation is in
  // `fields`, and the action, too.
  uint32_t obs_size = 0;
  uint32_t act_size = 0;
  TaskDescription description = {};
  // For display: empty, or a name for each of the obs_size or act_size values.
  std::vector<std::string> observation_names = {};
  std::vector<std::string> action_names = {};
  // Arrays of other types and shapes, by the rules of RegionSpec. An engine
  // with fields has no steps and resets without an exchange: real time and the
  // RPCs SingleStep and ResetAgent raise Unsupported.
  std::vector<FieldSpec> fields = {};
  // For engines that write on a GPU. They have no steps and resets without an
  // exchange either.
  std::optional<GpuSchema> gpu = {};
  // Images that the engine writes with each observation; width 0: none.
  ImageSize images = {};
};

struct ResetRequest {
  uint32_t env;
  // With a seed, the environment's random stream starts again from the seed.
  // Without one, the stream continues.
  std::optional<uint64_t> seed;
};

// The arrays of all environments. The row of environment i begins at i times
// the row's length. The client can write to this memory. So actions may hold
// any value, NaN included, and a result may change after the engine has written
// it. An engine that needs a value later keeps a copy of its own.
struct StepIo {
  std::span<const float> actions;  // [num_envs, act_size]
  std::span<float> obs;            // [num_envs, obs_size]
  std::span<float> rewards;        // [num_envs]
  std::span<uint8_t> terminateds;  // [num_envs], 0 or 1
  std::span<uint8_t> truncateds;   // [num_envs], 0 or 1
  std::span<double> infos = {};    // [num_envs, info_size]
  // All fields of the region; FindField finds one. The engine reads kAction,
  // and writes all others except kFinalObs, which the host writes.
  std::span<const FieldArray> fields = {};
  // [num_envs, height, width, 3], the top row first; of EngineSchema::images.
  // Empty in work without an exchange.
  std::span<uint8_t> images = {};
};

// The arrays for a reset; StepIo's rules apply.
struct ResetIo {
  std::span<float> obs;                     // [num_envs, obs_size]
  std::span<double> infos;                  // [num_envs, info_size]
  std::span<const FieldArray> fields = {};  // all fields of the region
  std::span<uint8_t> images = {};           // as StepIo's
};

// A reset or a step that the host requests, often as a part of an exchange.
// Exactly one of `resets` and `steps` has items. The engine does the work of
// Engine::Reset(resets, reset_io) or of Engine::Step(steps, step_io).
struct EngineWork {
  std::span<const ResetRequest> resets;
  ResetIo reset_io;
  std::span<const uint32_t> steps;
  StepIo step_io;
};

// The part of the interface that every engine has.
class EngineBase {
 public:
  virtual ~EngineBase() = default;

  virtual const EngineSchema& schema() const = 0;

  // Undoes the effects of RPCs: randomisation contracts, control values, moved
  // entities, debug marks. The host calls this function when a client leaves or
  // attaches, and then resets all environments. The host does neither if
  // nothing has changed since the last reset of all environments.
  virtual void ClearClientState() {}

  // Returns the source that renders the environments for viewers, or nullptr if
  // the engine cannot render. The engine owns the source, and returns the same
  // pointer each time.
  virtual FrameSource* frames() { return nullptr; }
  // Returns the source of the observations' images, by the rules of frames().
  virtual FrameSource* images() { return nullptr; }
  // Returns the source of the scene that viewers draw themselves, by the rules
  // of frames(); nullptr: the engine has no scene.
  virtual SceneSource* scene() { return nullptr; }

  // Returns the interfaces that the RPC services use. The engine owns these
  // objects, and returns the same pointers each time. The stepping thread calls
  // their methods between exchanges.
  virtual EnginePorts ports() { return {}; }

  // Returns the simulated seconds per step; 0 if unknown.
  virtual double step_secs() const { return 0; }

  // Whether the engine has work besides resets and steps, such as calls to
  // answer: then EngineHost::Next returns, so that it can.
  virtual bool HasOtherWork() const { return false; }
};

// An engine whose Reset and Step the host calls. If one of them returns an
// error, the client gets EngineFailed with the error's text, and the host
// continues to serve. An exception derived from std::exception has the same
// effect. A step allocates nothing if Reset and Step allocate nothing.
class Engine : public EngineBase {
 public:
  // Starts a new episode in each of the requested environments. `requests` has
  // each environment at most once. Writes these environments' rows of obs, and
  // of the fields of kObs and kStatus. Also writes their infos, but only those
  // whose description has at_reset = true. Writes nothing else.
  virtual absl::Status Reset(std::span<const ResetRequest> requests,
                             const ResetIo& io) = 0;

  // Steps each of the environments `envs` once, with its row of actions. `envs`
  // is ascending, without duplicates. Writes these environments' rows of obs,
  // rewards, terminateds, truncateds, infos and fields, and no other row. An
  // environment whose episode has ended continues until the host resets it.
  virtual absl::Status Step(std::span<const uint32_t> envs,
                            const StepIo& io) = 0;
};

}  // namespace tandem
