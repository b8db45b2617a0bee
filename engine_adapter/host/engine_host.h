// EngineHost: owns an engine's region, its loop and its lifecycle.
//
// Data flow: client <-> EngineSide <-> EngineHost <-> Engine.
// Ownership: the engine's process. Either the host runs the loop (Run, or Start
// and Stop), or an engine that has a loop of its own calls Poll in it.
//
//   MyEngine engine;
//   absl::StatusOr<std::unique_ptr<EngineHost>> host =
//       EngineHost::Create(&engine, {.name = "demo", .seed = 0});
//   if (!host.ok()) return host.status();
//   (*host)->Run();  // until RequestStop, from another thread or a handler

#ifndef TANDEM_ENGINE_ADAPTER_HOST_ENGINE_HOST_H_
#define TANDEM_ENGINE_ADAPTER_HOST_ENGINE_HOST_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/frames/frame_thread.h"
#include "engine_adapter/frames/image_thread.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/host/simulation.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/services/rpc_config.h"
#include "transport/base/clock.h"
#include "transport/session/engine_side.h"

namespace tandem {

class RpcHost;

// States: open (after Create) -> running (Run or Start) -> stopped (Run
// returned, Stop). Poll is legal while open. The region exists from Create to
// destruction.
class EngineHost {
 public:
  struct Options {
    std::string name;
    // Environment i starts from seed + i; without it, from what the engine
    // chooses.
    std::optional<uint64_t> seed = {};
    EngineSide::Options side = {};
    RpcConfig rpc = {};
    uint32_t rpc_ring_bytes = kDefaultRingBytes;  // a power of two
    // With which each client starts; none: FAST.
    std::optional<rpc::SimulationMode> mode = {};
    // Draws environments while a viewer is attached, on a thread of its own.
    std::optional<FrameOptions> frames = {};
    // Draws environments in each exchange, into the region's images.
    std::optional<ImageOptions> images = {};
    // Asked now and then while images are drawn, which takes long where they
    // are many: once it says so, Create ends with kInterrupted, and an exchange
    // with kEngineFailed. From any thread.
    std::function<bool()> stopping = {};
    // Called with a line for each event: clients that come, leave, break. By
    // the thread that serves, and by the one that draws.
    std::function<void(absl::string_view)> log = {};
  };

  // Resets every environment into a region of the name, then opens it to
  // clients. `engine` outlives the host. Errors: EngineSide::Create and Open,
  // and the engine's own; kInvalidArgument for invalid frames, or of an
  // engine that draws none; kUnsupported for a mode that it cannot have.
  static absl::StatusOr<std::unique_ptr<EngineHost>> Create(Engine* engine,
                                                            Options options);
  // Stops, then removes the region.
  ~EngineHost();
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  // Serves clients on this thread until RequestStop.
  void Run();

  // Serves them on a thread of the host's. Call once.
  void Start();
  // Ends that thread and waits for it. Safe twice.
  void Stop();
  bool IsRunning() const;

  // Serves what is there now and returns at once: whether it did anything.
  bool Poll();

  // Thread-safe and async-signal-safe.
  void RequestStop() { side_.RequestStop(); }

  // Takes the region's name away, for a process that is about to end without
  // destroying its host. From any thread; does not wait for a step.
  void RemoveName() const { side_.region().RemoveName(); }

  const EngineSide& side() const { return side_; }

 private:
  EngineHost(Engine* engine, Options options, EngineSide side);
  absl::Status StartFrames(FrameSource* source, uint32_t num_envs);
  absl::Status StartImages(FrameSource* source, uint32_t num_envs);
  absl::Status ResetAll(std::optional<uint64_t> first_seed);
  absl::Status DrawImages(ExchangeKind kind);
  void Serve(EngineEvent event);
  void Exchange();
  absl::Status StartAnew();
  void Advance();
  Deadline NextDue() const;
  void BeginRpcs();
  void ServeRpcs();
  void CountForFrames(const StepArrays& arrays, bool stepped);
  void ServeFrames();
  void LogFailure(const absl::Status& status);
  void Log(absl::string_view line) const;

  Engine* const engine_;
  Options options_;
  EngineSide side_;
  ExchangeRunner runner_;
  // The simulation's changes() when all was reset last: as long as it has no
  // others, the next client finds everything as it should be.
  std::optional<uint64_t> fresh_at_;
  absl::Status last_failure_;  // of the last step
  Simulation simulation_;
  std::unique_ptr<RpcHost> commands_;
  std::unique_ptr<FrameThread> frames_;  // nullptr without frames
  std::unique_ptr<ImageThread> images_;  // nullptr without images
  std::thread thread_;
  // Writer: the serving thread; readers: any; whether Run is under way.
  std::atomic<bool> running_{false};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_ENGINE_HOST_H_
