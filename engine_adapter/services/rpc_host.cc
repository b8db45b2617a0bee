#include "engine_adapter/services/rpc_host.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "schema/messages/rpc_methods.h"
#include "transport/envelope.h"

namespace tandem {
namespace {

// Returns the payload of an engine's answer.
absl::StatusOr<rpc::PayloadUnion> PayloadOf(rpc::MethodId method,
                                            std::span<const uint8_t> envelope) {
  if (envelope.size() > AlignedEnvelope::kMaxBytes) {
    return MakeError(
        ErrorCode::kMessageTooLarge,
        absl::StrCat("answer to ", NameOf(method), ": expected at most ",
                     AlignedEnvelope::kMaxBytes, " bytes, found ",
                     envelope.size(), "; the call is still unanswered"));
  }
  const rpc::Payload expected = PayloadsOf(method).answer;
  const AlignedEnvelope copy(envelope);
  const rpc::Envelope* const found = copy.get();
  if (found == nullptr || found->payload_type() != expected ||
      found->payload() == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat(
            "answer to ", NameOf(method), ": expected an Envelope of ",
            rpc::EnumNamePayload(expected), ", found ",
            found == nullptr
                ? absl::StrCat(envelope.size(), " bytes that are no Envelope")
                : rpc::EnumNamePayload(found->payload_type()),
            "; the call is still unanswered"));
  }
  rpc::EnvelopeT unpacked;
  found->UnPackTo(&unpacked);
  return std::move(unpacked.payload);
}

}  // namespace

// Registers methods, each with the switch and the rate limit of its service.
class RpcHost::Table {
 public:
  explicit Table(RpcHost* host) : host_(host) {}

  // If `owner` is nullptr, the engine lacks the method's port and does not
  // serve it.
  template <typename Owner, typename Request, typename Response>
  void Add(Service service, rpc::MethodId id, Owner* owner,
           absl::StatusOr<Response> (Owner::*call)(const Request&)) {
    Serve<Request, Response>(service, id, owner, call);
  }
  template <typename Owner, typename Request, typename Response>
  void Add(Service service, rpc::MethodId id, Owner* owner,
           absl::StatusOr<Response> (Owner::*call)(const Request&) const) {
    Serve<Request, Response>(service, id, owner, call);
  }
  template <typename Owner, typename Request, typename Response>
  void Add(Service service, rpc::MethodId id, Owner* owner,
           void (Owner::*call)(const Request&, RpcAnswer<Response>)) {
    if (owner != nullptr && !host_->dispatcher_.HasHandler(id)) {
      host_->dispatcher_.ServeLater<Request, Response>(
          id,
          [owner, call](const Request& request, RpcAnswer<Response> answer) {
            (owner->*call)(request, std::move(answer));
          });
    }
    host_->Register({.service = service, .id = id});
  }

 private:
  template <typename Request, typename Response, typename Owner, typename Call>
  void Serve(Service service, rpc::MethodId id, Owner* owner, Call call) {
    constexpr bool kIsStream = std::is_same_v<Response, RpcStream>;
    assert(kIsStream == IsStream(id));
    if (owner != nullptr && !host_->dispatcher_.HasHandler(id)) {
      const auto handler = [owner, call](const Request& request) {
        return (owner->*call)(request);
      };
      if constexpr (kIsStream) {
        host_->dispatcher_.ServeStream<Request>(id, handler);
      } else {
        host_->dispatcher_.Serve<Request, Response>(id, handler);
      }
    }
    host_->Register({.service = service, .id = id});
  }

  RpcHost* host_;
};

RpcHost::RpcHost(const RpcConfig& config, EngineBase* engine,
                 SimulationPort* simulation, Links links)
    : config_(config),
      engine_(engine),
      simulation_(simulation),
      queue_(std::make_shared<MainThreadQueue>(links.wake)),
      agent_(engine->schema(), engine->ports().randomization, simulation),
      scene_(engine->ports().scene, simulation, engine->schema().num_envs),
      dispatcher_([simulation] { return simulation->busy(); }),
      links_(std::move(links)) {
  // A step waits for a few calls of each attendant at most.
  constexpr RpcConnection::Limits kOfAttendant = {.calls_per_poll = 2};
  const auto images = [&](size_t caller) {
    return ImageSlotWriter(links_.image_place(caller));
  };
  callers_[kClientCaller] = std::make_unique<RpcConnection>(
      &dispatcher_, RpcConnection::Limits(), RpcConnection::Admission(),
      images(kClientCaller));
  for (size_t caller = kClientCaller + 1; caller < kCallers; ++caller) {
    callers_[caller] = std::make_unique<RpcConnection>(
        &dispatcher_, kOfAttendant,
        [this](rpc::MethodId method) { return Admission(method); },
        images(caller));
  }
  const EnginePorts ports = engine->ports();
  const uint32_t num_envs = engine->schema().num_envs;
  if (ports.states != nullptr && !engine->schema().gpu &&
      simulation->state_rows() != nullptr) {
    states_.emplace(engine->schema(), ports.states, simulation);
  }
  if (ports.mujoco != nullptr) {
    mujoco_.emplace(ports.mujoco, simulation, num_envs);
    telemetry_.emplace(ports.mujoco, simulation, num_envs);
    if (MujocoModelPort* const model = ports.mujoco->model()) {
      model_.emplace(model, simulation, num_envs);
    }
  }
  if (ports.camera != nullptr) {
    camera_.emplace(ports.camera, simulation, queue_, num_envs);
    viewport_.emplace(ports.camera, simulation, queue_, num_envs,
                      config_[Service::kViewport].stream_hz);
  }
  if (ports.debug != nullptr) {
    debug_.emplace(ports.debug, simulation, num_envs);
  }
  if (ports.own != nullptr) {
    own_.emplace(ports.own, engine->schema().description.own_methods,
                 simulation);
  }
  if (links_.live_scene != nullptr && links_.live_scene->IsOffered()) {
    live_scene_.emplace(links_.live_scene);
  }
  ServeAll(ports);
}

// Registers every method, except those that RpcDispatcher answers itself.
void RpcHost::ServeAll(const EnginePorts& ports) {
  using Id = rpc::MethodId;
  if (ports.methods != nullptr) {
    for (const Id id : ports.methods->Methods()) {
      ServeByEngine(ports.methods, id);
    }
  }
  const auto pointer = [](auto& service) {
    return service ? &*service : nullptr;
  };
  // By the names in hazel_rpc.fbs.
  const struct {
    AgentService* Agent;
    StatesService* States;
    MujocoService* Mujoco;
    ModelService* Model;
    TelemetryService* Telemetry;
    SceneService* Entities;
    SceneService* Scene;
    LiveSceneService* LiveScene;
    CameraService* Camera;
    ViewportService* Viewport;
    DebugService* Debug;
    OwnService* Own;
  } owners = {&agent_,
              pointer(states_),
              pointer(mujoco_),
              pointer(model_),
              pointer(telemetry_),
              ports.scene != nullptr ? &scene_ : nullptr,
              &scene_,
              pointer(live_scene_),
              pointer(camera_),
              pointer(viewport_),
              pointer(debug_),
              pointer(own_)};
  constexpr struct {
    Service Agent = Service::kAgent;
    Service States = Service::kAgent;
    Service Mujoco = Service::kMujoco;
    Service Model = Service::kMujoco;
    Service Telemetry = Service::kTelemetry;
    Service Entities = Service::kScene;
    Service Scene = Service::kScene;
    Service LiveScene = Service::kScene;
    Service Camera = Service::kCamera;
    Service Viewport = Service::kViewport;
    Service Debug = Service::kDebug;
    Service Own = Service::kOwn;
  } kSwitches;
  Table all(this);
#define TANDEM_SERVE(service, method, request, answer, streams) \
  all.Add(kSwitches.service, Id::method, owners.service,        \
          &std::remove_pointer_t<decltype(owners.service)>::method);
  TANDEM_SERVICE_METHODS(TANDEM_SERVE)
#undef TANDEM_SERVE
  dispatcher_.Serve<rpc::GetServicesRequestT, rpc::GetServicesResponseT>(
      Id::GetServices,
      [this](const auto& request) { return GetServices(request); });
  dispatcher_.Serve<rpc::SetServiceRequestT, rpc::SetServiceResponseT>(
      Id::SetService,
      [this](const auto& request) { return SetService(request); });
  for (const Id id : {Id::GetServices, Id::GetSimulationMode, Id::SetPaused}) {
    dispatcher_.AnswerWhileBusy(id);
  }
}

absl::Status RpcHost::CheckMethods(const MethodPort* methods) {
  using Id = rpc::MethodId;
  constexpr std::array kOfTheHost = {
      Id::ResetAgent, Id::SaveStates,        Id::LoadStates,
      Id::SetPaused,  Id::SetSimulationMode, Id::GetSimulationMode,
      Id::SingleStep, Id::CancelStream,      Id::GetServices,
      Id::SetService};
  if (methods == nullptr) return absl::OkStatus();
  std::set<Id> seen;
  std::vector<std::string> wrong;
  for (const Id id : methods->Methods()) {
    const bool known = PayloadsOf(id).answer != rpc::Payload::NONE;
    if (known && !IsStream(id) &&
        std::ranges::find(kOfTheHost, id) == kOfTheHost.end() &&
        seen.insert(id).second) {
      continue;
    }
    wrong.push_back(absl::StrCat(NameOf(id)));
  }
  if (wrong.empty()) return absl::OkStatus();
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("methods: expected methods that an engine may answer, each "
                   "once, found ",
                   absl::StrJoin(wrong, ", "),
                   "; the host answers streams, resets, time and services"));
}

void RpcHost::ServeByEngine(MethodPort* port, rpc::MethodId method) {
  using Answer = RpcAnswer<rpc::PayloadUnion>;
  dispatcher_.ServePayloads(method, [port, method](
                                        std::span<const uint8_t> envelope,
                                        const Answer& answer) {
    port->Handle(
        method, envelope, answer.wanted(),
        [method, answer](
            absl::StatusOr<std::span<const uint8_t>> bytes) -> absl::Status {
          if (answer.wanted().expired()) {
            return MakeError(ErrorCode::kNoStepPending,
                             "answer: expected a call without an answer, "
                             "found one that was answered or cancelled");
          }
          if (!bytes.ok()) {
            answer(bytes.status());
            return absl::OkStatus();
          }
          TANDEM_ASSIGN_OR_RETURN(rpc::PayloadUnion payload,
                                  PayloadOf(method, *bytes));
          answer(std::move(payload));
          return absl::OkStatus();
        });
  });
}

void RpcHost::Register(const Method& method) {
  methods_.push_back(method);
  const RpcConfig::OfService& service = config_[method.service];
  if (IsStream(method.id)) {
    dispatcher_.LimitStreams(method.id, service.stream_hz);
  }
  if (!service.enabled) SwitchOff(method);
}

void RpcHost::SwitchOff(const Method& method) {
  if (!dispatcher_.HasHandler(method.id)) return;
  const std::string why = absl::StrCat(
      rpc::EnumNameMethodId(method.id), ": service ", NameOf(method.service),
      " is switched off; switch it on by SetService, or start "
      "the engine with this service");
  dispatcher_.SwitchOff(method.id, why);
  for (const auto& caller : callers_) {
    caller->EndStreams(method.id, MakeError(ErrorCode::kUnsupported, why));
  }
}

bool RpcHost::Has(Service service) const {
  return std::ranges::any_of(methods_, [&](const Method& method) {
    return method.service == service && dispatcher_.HasHandler(method.id);
  });
}

absl::Status RpcHost::CheckSwitch(Service service, bool enabled) const {
  if (!enabled || Has(service)) return absl::OkStatus();
  return MakeError(
      ErrorCode::kUnsupported,
      absl::StrCat("service ", NameOf(service), ": expected an engine that ",
                   "can serve it, found '", engine_->schema().task,
                   "', which cannot"));
}

absl::Status RpcHost::Enable(Service service, bool enabled) {
  TANDEM_RETURN_IF_ERROR(CheckSwitch(service, enabled));
  config_[service].enabled = enabled;
  // No caller could end a pause any more.
  if (service == Service::kScene && !enabled) simulation_->SetPaused(false);
  for (const Method& method : methods_) {
    if (method.service != service) continue;
    if (enabled) {
      dispatcher_.SwitchOn(method.id);
    } else {
      SwitchOff(method);
    }
  }
  links_.switched();
  return absl::OkStatus();
}

absl::Status RpcHost::EnableLater(Service service, bool enabled) {
  TANDEM_RETURN_IF_ERROR(CheckSwitch(service, enabled));
  queue_->Post([this, service, enabled] { (void)Enable(service, enabled); });
  return absl::OkStatus();
}

absl::Status RpcHost::Admission(rpc::MethodId method) const {
  if (method == rpc::MethodId::LoadStates) {
    return MakeError(ErrorCode::kUnsupported,
                     "LoadStates: expected the client, found an attendant, "
                     "which may only save states; load them by the client");
  }
  if (method != rpc::MethodId::ResetAgent &&
      method != rpc::MethodId::SendControl &&
      method != rpc::MethodId::SetQpos) {
    return absl::OkStatus();
  }
  const std::string client = links_.client_text();
  if (client.empty()) return absl::OkStatus();
  return MakeError(
      ErrorCode::kAlreadyAttached,
      absl::StrCat(rpc::EnumNameMethodId(method),
                   ": expected an engine without a client, found ", client,
                   "; only the client may call this while it is attached"));
}

RpcHost::~RpcHost() { queue_->Close(); }

void RpcHost::Start(size_t caller, EnvelopeReader reader,
                    EnvelopeWriter writer) {
  Stop(caller);
  callers_[caller]->Begin(std::move(reader), std::move(writer));
}

void RpcHost::Stop(size_t caller) {
  callers_[caller]->End();
  quiet_ = AllQuiet();
  if (mujoco_) mujoco_->ForgetCancelled();
  if (caller != kClientCaller) simulation_->CallerLeft(caller);
}

RpcHost::More RpcHost::Poll(int64_t now_ns) {
  if (!simulation_->busy()) {
    queue_->Pump();
    if (mujoco_) mujoco_->AnswerWaiting();
  }
  More more;
  for (size_t caller = 0; caller < kCallers; ++caller) {
    simulation_->SetCaller(caller);
    const bool left = callers_[caller]->Poll(now_ns);
    (caller == kClientCaller ? more.client : more.attendants) |= left;
  }
  quiet_ = AllQuiet();
  return more;
}

bool RpcHost::AllQuiet() const {
  return std::ranges::all_of(
      callers_, [](const auto& caller) { return caller->IsQuiet(); });
}

std::optional<int64_t> RpcHost::DueNs(int64_t now_ns) const {
  std::optional<int64_t> due;
  for (const auto& caller : callers_) {
    const std::optional<int64_t> then = caller->DueNs(now_ns);
    if (then) due = std::min(due.value_or(*then), *then);
  }
  return due;
}

absl::StatusOr<rpc::SetServiceResponseT> RpcHost::SetService(
    const rpc::SetServiceRequestT& request) {
  const std::optional<Service> service = ServiceNamed(request.name);
  if (!service) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("SetService: expected a name of ",
                                  absl::StrJoin(kServiceNames, ", "),
                                  ", found '", request.name, "'"));
  }
  TANDEM_RETURN_IF_ERROR(Enable(*service, request.enabled));
  rpc::SetServiceResponseT response;
  response.success = true;
  response.message = absl::StrCat("service ", request.name, " switched ",
                                  request.enabled ? "on" : "off");
  return response;
}

absl::StatusOr<rpc::GetServicesResponseT> RpcHost::GetServices(
    const rpc::GetServicesRequestT&) const {
  rpc::GetServicesResponseT response;
  for (size_t i = 0; i < kServices; ++i) {
    const auto service = static_cast<Service>(i);
    auto info = std::make_unique<rpc::ServiceInfoT>();
    info->name = NameOf(service);
    for (const Method& each : methods_) {
      if (each.service != service || !dispatcher_.Serves(each.id)) continue;
      info->methods.push_back(each.id);
      // WatchScene has no rate of its own: it has an item after each change.
      if (IsStream(each.id) && each.id != rpc::MethodId::WatchScene) {
        info->max_hz = config_[service].stream_hz;
        info->max_fps = static_cast<uint32_t>(std::ceil(info->max_hz));
      }
    }
    info->enabled = !info->methods.empty();
    response.services.push_back(std::move(info));
  }
  return response;
}

uint32_t RpcHost::enabled_services() const {
  uint32_t bits = 0;
  for (const Method& each : methods_) {
    if (dispatcher_.Serves(each.id)) {
      bits |= BitOf(each.service);
    }
  }
  return bits;
}

}  // namespace tandem
