// RpcHost: an engine's services, and their callers: the client and attendants.
//
// Data flow: RpcConnection -> RpcDispatcher -> a service's method -> the
// engine's port -> RpcConnection.
// Ownership: EngineHost owns it; the stepping thread calls it.
//
//   RpcHost rpcs(config, &engine, &simulation, links);
//   rpcs.Start(kClientCaller, std::move(reader), std::move(writer));
//   if (rpcs.Poll(MonotonicNanos()).client) side.PollRpcsAgain();
//   rpcs.Stop(kClientCaller);  // it has left

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_connection.h"
#include "engine_adapter/rpc/rpc_dispatcher.h"
#include "engine_adapter/rpc_config.h"
#include "engine_adapter/services/agent_service.h"
#include "engine_adapter/services/image_services.h"
#include "engine_adapter/services/live_scene_service.h"
#include "engine_adapter/services/model_service.h"
#include "engine_adapter/services/mujoco_service.h"
#include "engine_adapter/services/own_service.h"
#include "engine_adapter/services/scene_service.h"
#include "engine_adapter/services/states_service.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/frames/image_slot.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {

// The caller in the slot s of attendants is kClientCaller + 1 + s.
inline constexpr size_t kClientCaller = 0;
inline constexpr size_t kCallers = 1 + kAttendantSlots;

// Not thread-safe, except for Post. States of each caller: stopped, running.
// Start: any -> running; Stop: any -> stopped.
class RpcHost {
 public:
  struct Links {
    // Makes the stepping thread call Poll soon. Any thread may call it, also a
    // thread of the engine.
    std::function<void()> wake;
    // The client, in words; "": there is none. While there is one, attendants
    // may neither reset nor control.
    std::function<std::string()> client_text = [] { return std::string(); };
    // Called when the set of enabled services has changed.
    std::function<void()> switched = [] {};
    // The slots for images of a caller.
    std::function<ImagePlace(size_t caller)> image_place = [](size_t) {
      return ImagePlace();
    };
    // Must outlive the host; nullptr: none.
    LiveScene* live_scene = nullptr;
  };
  // `engine` and `simulation` must outlive this object.
  RpcHost(const RpcConfig& config, EngineBase* engine,
          SimulationPort* simulation, Links links);
  ~RpcHost();
  RpcHost(const RpcHost&) = delete;
  RpcHost& operator=(const RpcHost&) = delete;

  // kInvalidArgument: `methods` has a method that only the host may answer, or
  // one twice. nullptr: OK.
  static absl::Status CheckMethods(const MethodPort* methods);

  void Start(size_t caller, EnvelopeReader reader, EnvelopeWriter writer);
  // The caller has left. Ends an attendant's pause; that of a client ends with
  // Simulation::Restart.
  void Stop(size_t caller);
  // Whether the caller is there and its rings are valid.
  bool IsRunning(size_t caller) const {
    return callers_[caller]->IsOpen() && !callers_[caller]->broken();
  }

  // Executes the work of other threads unless the engine is busy, then polls
  // all callers as RpcConnection::Poll does.
  struct More {
    bool client = false;
    bool attendants = false;
  };
  More Poll(int64_t now_ns);

  // Whether Poll has no work unless a message arrives.
  bool IsQuiet() const { return quiet_ && !queue_->HasWork(); }
  // As RpcConnection's; the earliest of all callers.
  std::optional<int64_t> DueNs(int64_t now_ns) const;
  // Of the client.
  uint64_t dropped() const { return callers_[kClientCaller]->dropped(); }

  absl::StatusOr<rpc::GetServicesResponseT> GetServices(
      const rpc::GetServicesRequestT& request) const;
  // kInvalidArgument: no service has the name. kUnsupported: the engine lacks
  // what the service needs.
  absl::StatusOr<rpc::SetServiceResponseT> SetService(
      const rpc::SetServiceRequestT& request);

  // The enabled services: bits of schema/layout/service.h.
  uint32_t enabled_services() const;
  // Whether the engine has what a method of this service needs. Thread-safe.
  bool Has(Service service) const;
  // Switches a service on or off, for these callers and later ones. Calls that
  // wait for their answer get it; streams of the service end with kUnsupported.
  // To switch kScene off ends a pause. kUnsupported: to switch on what the
  // engine has no port for. Poll executes EnableLater's; any thread may call
  // it.
  absl::Status Enable(Service service, bool enabled);
  absl::Status EnableLater(Service service, bool enabled);

 private:
  struct Method {
    Service service;
    rpc::MethodId id;
  };
  class Table;

  void ServeAll(const EnginePorts& ports);
  void ServeByEngine(MethodPort* port, rpc::MethodId method);
  void Register(const Method& method);
  void SwitchOff(const Method& method);
  absl::Status CheckSwitch(Service service, bool enabled) const;
  // Whether attendants may call the method now.
  absl::Status Admission(rpc::MethodId method) const;
  bool AllQuiet() const;

  RpcConfig config_;
  EngineBase* engine_;
  SimulationPort* simulation_;
  std::vector<Method> methods_;  // all methods, served or not
  std::shared_ptr<MainThreadQueue> queue_;
  AgentService agent_;
  SceneService scene_;
  // nullopt: the engine lacks the service's port.
  std::optional<StatesService> states_;
  std::optional<MujocoService> mujoco_;
  std::optional<ModelService> model_;
  std::optional<TelemetryService> telemetry_;
  std::optional<CameraService> camera_;
  std::optional<ViewportService> viewport_;
  std::optional<DebugService> debug_;
  std::optional<OwnService> own_;
  std::optional<LiveSceneService> live_scene_;
  RpcDispatcher dispatcher_;  // its handlers use all of the above
  Links links_;
  std::array<std::unique_ptr<RpcConnection>, kCallers> callers_;
  bool quiet_ = true;  // AllQuiet() after the last Poll or Stop
};

}  // namespace tandem
