// EngineHost::Impl: all of a host. engine_host.h has the contracts of the
// public calls, and their legal order.
//
// Data flow: EngineSide's events -> Serve -> the runner's work -> the engine ->
// FinishWork -> the client.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/frames/frame_thread.h"
#include "engine_adapter/frames/image_thread.h"
#include "engine_adapter/host/callers.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/host/simulation.h"
#include "engine_adapter/scene/live_scene.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/exported_arrays.h"
#include "transport/session/engine_side.h"
#include "transport/step_arrays.h"

namespace tandem {

class EngineHost::Impl {
 public:
  Impl(EngineBase* engine, Options options, std::shared_ptr<ExportedArrays> gpu,
       EngineSide side);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static rpc::SimulationMode FirstMode(const Options& options) {
    return options.mode.value_or(rpc::SimulationMode::FAST);
  }

  // Begins the engine's first work, after the constructor. The error: the work
  // has failed before the engine could do it.
  absl::Status BeginOpening();
  absl::Status CallEngine(Engine* engine);
  void Run();
  void Start();
  void Stop();
  bool IsRunning() const;
  bool Poll();
  const EngineWork* Next(Deadline deadline);
  absl::Status Done(const absl::Status& result);
  absl::Status EnableService(Service service, bool enabled);
  EngineSide& side() { return side_; }
  const std::shared_ptr<ExportedArrays>& gpu() const { return gpu_; }

 private:
  // What the runner's work is for.
  enum class Purpose : uint8_t {
    kNone,
    kOpening,
    kExchange,
    kArrival,
    kDeparture,
    kDueStep,
    kServiceReset,
  };

  absl::Status StartFrames();
  absl::Status StartImages();
  absl::Status DrawImages(ExchangeKind kind);
  absl::Status KeepFinal(std::span<const uint32_t> envs);
  absl::Status KeepFinalImages(std::span<const uint32_t> envs);
  void Serve(EngineEvent event);
  void BeginDueStep();
  void StartWork(Purpose purpose);
  void DiscardStates();
  void FinishWork();
  absl::Status EndResetAll();
  absl::Status EndOpening();
  void EndExchange();
  void EndArrival(const absl::Status& status);
  void EndDeparture(const absl::Status& status);
  void EndDueStep();
  void StartAnew(Purpose purpose);
  Deadline NextDue() const;
  LiveScene::Links SceneLinks();
  void CountForViewers(const StepArrays& arrays, bool stepped);
  void ServeViewers();
  void LogFailure(const absl::Status& status);
  void Log(absl::string_view line) const;

  EngineBase* const engine_;
  Engine* synchronous_ = nullptr;  // the same engine; nullptr: it uses Next
  Options options_;
  const bool has_images_;                // of images_, or of the engine itself
  std::shared_ptr<ExportedArrays> gpu_;  // freed after the region's name
  EngineSide side_;
  ExchangeRunner runner_;
  Purpose purpose_ = Purpose::kNone;
  absl::Status opening_;  // the result of kOpening
  bool taken_ = false;    // whether Next has returned the runner's work
  // The simulation's changes() at the last reset of all environments. While it
  // is equal, the next client needs no reset.
  std::optional<uint64_t> fresh_at_;
  absl::Status last_failure_;  // the status of the last step
  Simulation simulation_;
  // Whether there is a frame thread, or the scene is watched.
  bool has_viewers_ = false;
  LiveScene scene_;
  Callers callers_;                      // its streams watch the scene
  std::unique_ptr<FrameThread> frames_;  // nullptr without frames
  std::unique_ptr<ImageThread> images_;  // nullptr without images
  std::thread thread_;
  // Whether Run is in progress. Writer: the serving thread; readers: any
  // thread.
  std::atomic<bool> running_{false};
};

}  // namespace tandem
