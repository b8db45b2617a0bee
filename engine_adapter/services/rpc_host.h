// RpcHost: an engine's services, and the client that calls them.
//
// Data flow: EnvelopeReader -> RpcDispatcher -> a service's method -> the
// engine's port -> EnvelopeWriter.
// Ownership: EngineHost owns it; the stepping thread calls it.
//
//   RpcHost commands(config, &engine, &simulation, wake);
//   commands.Start(std::move(reader), std::move(writer));  // a client came
//   if (commands.Poll(MonotonicNanos())) side.PollRpcsAgain();
//   commands.Stop();                                       // it has left

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_RPC_HOST_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_RPC_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_dispatcher.h"
#include "engine_adapter/services/agent_service.h"
#include "engine_adapter/services/image_services.h"
#include "engine_adapter/services/mujoco_service.h"
#include "engine_adapter/services/rpc_config.h"
#include "engine_adapter/services/scene_service.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {

// Not thread-safe, except for the queue and `wake`. States: stopped, running.
// Start: any -> running; Stop: any -> stopped.
class RpcHost {
 public:
  // `engine` and `simulation` must outlive this object. `wake` makes the
  // stepping thread call Poll soon; any thread may call it, also a thread of
  // the engine.
  RpcHost(const RpcConfig& config, EngineBase* engine,
          SimulationPort* simulation, std::function<void()> wake);
  ~RpcHost();
  RpcHost(const RpcHost&) = delete;
  RpcHost& operator=(const RpcHost&) = delete;

  void Start(EnvelopeReader reader, EnvelopeWriter writer);
  void Stop();
  // Whether a client is attached and its rings are valid.
  bool IsRunning() const {
    return dispatcher_.HasClient() && !dispatcher_.broken();
  }

  // Executes the work of other threads unless the engine is busy, then polls as
  // RpcDispatcher::Poll does.
  bool Poll(int64_t now_ns);

  // Whether Poll has no work unless a message arrives.
  bool IsQuiet() const { return dispatcher_.IsQuiet() && !queue_->HasWork(); }
  std::optional<int64_t> DueNs(int64_t now_ns) const {
    return dispatcher_.DueNs(now_ns);
  }
  uint64_t dropped() const { return dispatcher_.dropped(); }

  absl::StatusOr<rpc::GetServicesResponseT> GetServices(
      const rpc::GetServicesRequestT& request) const;

  // The enabled services: bits of schema/layout/service.h.
  uint32_t enabled_services() const;
  // Whether the engine has what a method of this service needs. Thread-safe.
  bool Has(Service service) const;
  // Switches a service on or off, for this client and later ones. Calls that
  // wait for their answer get it; streams of the service end with kUnsupported.
  // To switch kScene off ends a pause.
  void Enable(Service service, bool enabled);

  // The stepping thread executes `work` in Poll. Any thread may call it.
  void Post(std::function<void()> work) { queue_->Post(std::move(work)); }

 private:
  struct Method {
    Service service;
    rpc::MethodId id;
    bool is_stream;
  };
  class Table;

  void ServeAll(const EnginePorts& ports);
  void Register(const Method& method);
  void SwitchOff(const Method& method);

  RpcConfig config_;
  SimulationPort* simulation_;
  std::vector<Method> methods_;  // all methods, served or not
  std::shared_ptr<MainThreadQueue> queue_;
  AgentService agent_;
  SceneService scene_;
  // nullopt: the engine lacks the service's port.
  std::optional<MujocoService> mujoco_;
  std::optional<TelemetryService> telemetry_;
  std::optional<CameraService> camera_;
  std::optional<ViewportService> viewport_;
  std::optional<DebugService> debug_;
  RpcDispatcher dispatcher_;  // last: its handlers use all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_RPC_HOST_H_
