// EngineHost: owns an engine's region and its loop, and handles clients that
// attach and leave.
//
// Data flow: client <-> EngineSide <-> EngineHost <-> Engine.
// Ownership: the engine's process owns it. Either the host runs the loop (Run,
// or Start and Stop), or an engine with its own loop calls Poll, or Next and
// Done.
//
//   MyEngine engine;
//   absl::StatusOr<std::unique_ptr<EngineHost>> host =
//       EngineHost::Create(&engine, {.name = "demo", .seed = 0});
//   if (!host.ok()) return host.status();
//   (*host)->Run();  // until RequestStop, from another thread or a handler
//
// An engine that needs several ticks of its own loop for a step:
//
//   auto host = EngineHost::CreateTicked(&engine, {.name = "demo"});
//   const EngineWork* step = nullptr;  // in progress
//   while (!host->StopRequested()) {   // one tick
//     if (step != nullptr && engine.HasFinished()) {
//       TANDEM_RETURN_IF_ERROR(host->Done(engine.WriteResults(*step)));
//       step = nullptr;
//     }
//     while (const EngineWork* work = host->Next(Deadline::Now())) {
//       if (!work->steps.empty()) {
//         engine.Begin(*(step = work));
//       } else {
//         TANDEM_RETURN_IF_ERROR(host->Done(engine.Reset(*work)));
//       }
//     }
//     engine.Tick();
//   }

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/rpc_config.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/service.h"
#include "transport/exported_arrays.h"
#include "transport/region.h"
#include "transport/step_arrays.h"
#include "transport/wait_strategy.h"

namespace tandem {

// States: open (after Create) -> running (Run or Start) -> stopped (after Run
// has returned, or Stop). Poll is legal while open. The region exists from
// Create to the destructor.
//
// After CreateTicked: opening -> open (the first Done), or failed if that Done
// returns an error: then Next returns no work. Next and Done are legal in all
// three; Run, Start, Stop and Poll in none, before CallEngine. Next and Done
// call the engine's ports(), frames(), images() and ClearClientState, on the
// caller's thread.
class EngineHost {
 public:
  struct Options {
    std::string name;
    // Environment i starts with the seed `seed` + i; without a seed the engine
    // chooses.
    std::optional<uint64_t> seed = {};
    WaitStrategy wait = WaitStrategy::kAdaptive;
    // Wakes and polls before a request that it forecasts (docs/waiting.md): for
    // an engine that leaves a core free.
    bool wakes_early = false;
    bool group_access = false;  // the region's mode is 0660 instead of 0600
    RpcConfig rpc = {};
    uint32_t rpc_ring_bytes = kDefaultRingBytes;  // a power of two
    // Bytes of an image in each of the slots for requested images, two for the
    // client and two for each attendant; 0: no slots.
    uint32_t image_slot_bytes = 0;
    // The mode at the start of each client; none: FAST.
    std::optional<rpc::SimulationMode> mode = {};
    // Renders environments while a viewer is attached, on an additional thread.
    std::optional<FrameOptions> frames = {};
    // Renders environments in each exchange, into the region's images.
    std::optional<ImageOptions> images = {};
    // Maximum snapshots a second of the live scene, 0 to kMaxSceneHz; 0: the
    // engine serves no WatchScene.
    double scene_hz = kMaxSceneHz;
    // Any thread may call this, repeatedly while it renders many images, which
    // takes long. If it returns true, rendering ends: Create, or the first
    // Done, returns kInterrupted, and an exchange fails with kEngineFailed.
    std::function<bool()> stopping = {};
    // Called when the region has its name, before Create or the first Done
    // returns.
    std::function<void(const std::string& name, const RegionMapping& region)>
        opened = {};
    // Called with a log line for each event, such as a client that attaches,
    // leaves or breaks the protocol. The serving thread and the render thread
    // call it.
    std::function<void(absl::string_view)> log = {};
  };

  // Makes a region with this name, resets every environment, then admits
  // clients. `engine` must outlive the host. Errors:
  //  - those of a region without room or with another owner, and the engine's;
  //  - kInvalidArgument: invalid frame or image options, or an engine without a
  //    frame source;
  //  - kUnsupported: the engine cannot run in the mode;
  //  - those of ExportedArrays::Make for an engine with arrays on a GPU, if
  //    TANDEM_CUDA=require, or the engine does not fill the region's arrays.
  static absl::StatusOr<std::unique_ptr<EngineHost>> Create(Engine* engine,
                                                            Options options);
  // The same for an engine that takes its work by Next. The first work resets
  // every environment; when it is done, the host admits clients. The errors of
  // the engine and of the region's name come from Done then.
  static absl::StatusOr<std::unique_ptr<EngineHost>> CreateTicked(
      EngineBase* engine, Options options);
  // Makes the host call the engine itself from now on, with `engine` the one of
  // CreateTicked: the states are Create's then. Errors: kInvalidArgument if
  // Next has returned work that is not done; else those of the first Done.
  absl::Status CallEngine(Engine* engine);
  // Does Stop, then removes the region.
  ~EngineHost();
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  // Serves clients on the caller's thread until RequestStop. Blocks.
  void Run();

  // Serves clients on a new thread. Call it once.
  void Start();
  // Ends that thread and waits for it. A second call has no effect.
  void Stop();
  bool IsRunning() const;

  // Serves pending events and returns without a wait. Returns whether there was
  // an event.
  bool Poll();

  // Serves pending events, and returns the engine's next work; nullptr if there
  // is none before `deadline`, or after RequestStop, or if a signal handler ran
  // or the engine has other work. Each work is returned once, and is
  // valid until Done. Before Done, Next returns nullptr at once, and answers
  // calls that do not need the engine: GetServices, GetSimulationMode,
  // SetPaused, CancelStream. All other calls wait. A client that leaves
  // meanwhile is noticed after Done.
  const EngineWork* Next(Deadline deadline);
  // The engine has done the work, or has failed: then the client gets
  // kEngineFailed with the text. An exchange can have further work, such as an
  // autoreset, which Next returns at once. With images, Done blocks while it
  // renders them. Errors: kInvalidArgument if Next has
  // returned no work, or Done was called for it; for the first work see
  // CreateTicked.
  absl::Status Done(const absl::Status& result);

  // Switches a service on or off: for the attached client between its
  // exchanges, and for later clients. To switch the scene service off also ends
  // a pause, which no caller could end otherwise. Any thread may call it.
  // kUnsupported: switching on a service that the engine lacks the port for.
  absl::Status EnableService(Service service, bool enabled);

  // Whether RequestStop was called.
  bool StopRequested() const;
  // Thread-safe and async-signal-safe.
  void RequestStop();

  // Removes the region's name. For a process that will end without the host's
  // destructor. Any thread may call it; it does not wait for a step.
  void RemoveName() const;

  // The region's name, and its memory.
  const std::string& name() const;
  const StepArrays& arrays() const;
  const std::shared_ptr<const RegionMapping>& mapping() const;
  // The arrays on a GPU; nullptr: none.
  const std::shared_ptr<ExportedArrays>& gpu() const;

 private:
  class Impl;  // host/engine_host_impl.h

  explicit EngineHost(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
