#include "engine_adapter/services/rpc_host.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schema/layout/service.h"

namespace tandem {
namespace {

struct MethodOfService {
  Service service;
  rpc::MethodId method;
  bool is_stream = false;
};

constexpr std::array kMethods = {
    MethodOfService{Service::kAgent, rpc::MethodId::GetAgentSchema},
    MethodOfService{Service::kAgent, rpc::MethodId::ResetAgent},
    MethodOfService{Service::kMujoco, rpc::MethodId::GetJointState},
    MethodOfService{Service::kMujoco, rpc::MethodId::GetMujocoInfo},
    MethodOfService{Service::kMujoco, rpc::MethodId::SendControl},
    MethodOfService{Service::kMujoco, rpc::MethodId::StreamJointState, true},
    MethodOfService{Service::kTelemetry, rpc::MethodId::GetTelemetrySchema},
    MethodOfService{Service::kTelemetry, rpc::MethodId::StreamTelemetry, true},
    MethodOfService{Service::kScene, rpc::MethodId::GetSceneInfo},
    MethodOfService{Service::kScene, rpc::MethodId::ListEntities},
    MethodOfService{Service::kScene, rpc::MethodId::GetEntity},
    MethodOfService{Service::kScene, rpc::MethodId::SetEntityTransform},
    MethodOfService{Service::kScene, rpc::MethodId::SetSimulationMode},
    MethodOfService{Service::kScene, rpc::MethodId::GetSimulationMode},
    MethodOfService{Service::kScene, rpc::MethodId::SetPaused},
    MethodOfService{Service::kScene, rpc::MethodId::SingleStep},
    MethodOfService{Service::kCamera, rpc::MethodId::ListCameras},
    MethodOfService{Service::kCamera, rpc::MethodId::GetCameraFrame},
    MethodOfService{Service::kCamera, rpc::MethodId::StreamCamera, true},
    MethodOfService{Service::kViewport, rpc::MethodId::GetViewportInfo},
    MethodOfService{Service::kViewport, rpc::MethodId::GetViewportFrame},
    MethodOfService{Service::kViewport, rpc::MethodId::StreamViewport, true},
    MethodOfService{Service::kDebug, rpc::MethodId::Draw},
};

}  // namespace

RpcHost::RpcHost(const RpcConfig& config, Engine* engine,
                 SimulationPort* simulation, std::function<void()> wake)
    : config_(config),
      queue_(std::make_shared<MainThreadQueue>(std::move(wake))),
      agent_(engine->schema(), engine->ports().randomization, simulation),
      scene_(engine->ports().scene, simulation, engine->schema().num_envs) {
  const EnginePorts ports = engine->ports();
  const uint32_t num_envs = engine->schema().num_envs;
  agent_.Register(&dispatcher_);
  scene_.Register(&dispatcher_);
  if (ports.mujoco != nullptr) {
    mujoco_.emplace(ports.mujoco, simulation, num_envs).Register(&dispatcher_);
    telemetry_.emplace(ports.mujoco, simulation, num_envs)
        .Register(&dispatcher_);
  }
  if (ports.camera != nullptr) {
    camera_.emplace(ports.camera, simulation, queue_, num_envs)
        .Register(&dispatcher_);
    viewport_
        .emplace(ports.camera, simulation, queue_, num_envs,
                 config_[Service::kViewport].stream_hz)
        .Register(&dispatcher_);
  }
  if (ports.debug != nullptr) {
    debug_.emplace(ports.debug, simulation, num_envs).Register(&dispatcher_);
  }
  dispatcher_.Serve<rpc::GetServicesRequestT, rpc::GetServicesResponseT>(
      rpc::MethodId::GetServices,
      [this](const auto& request) { return GetServices(request); });
  for (const MethodOfService& each : kMethods) {
    const RpcConfig::OfService& service = config_[each.service];
    if (each.is_stream) {
      dispatcher_.LimitStreams(each.method, service.stream_hz);
    }
    if (!service.enabled && dispatcher_.Serves(each.method)) {
      dispatcher_.SwitchOff(
          each.method,
          absl::StrCat(rpc::EnumNameMethodId(each.method), ": service ",
                       NameOf(each.service),
                       " is switched off; start the engine with it among "
                       "--services"));
    }
  }
}

RpcHost::~RpcHost() { queue_->Close(); }

void RpcHost::Start(EnvelopeReader reader, EnvelopeWriter writer) {
  dispatcher_.Begin(std::move(reader), std::move(writer));
}

bool RpcHost::Poll(int64_t now_ns) {
  queue_->Pump();
  if (mujoco_) mujoco_->AnswerWaiting();
  return dispatcher_.Poll(now_ns);
}

absl::StatusOr<rpc::GetServicesResponseT> RpcHost::GetServices(
    const rpc::GetServicesRequestT&) const {
  rpc::GetServicesResponseT response;
  for (size_t i = 0; i < kServices; ++i) {
    const auto service = static_cast<Service>(i);
    auto info = std::make_unique<rpc::ServiceInfoT>();
    info->name = NameOf(service);
    for (const MethodOfService& each : kMethods) {
      if (each.service != service || !dispatcher_.Serves(each.method)) continue;
      info->methods.push_back(each.method);
      if (each.is_stream) {
        info->max_fps =
            static_cast<uint32_t>(std::ceil(config_[service].stream_hz));
      }
    }
    info->enabled = !info->methods.empty();
    response.services.push_back(std::move(info));
  }
  return response;
}

uint32_t RpcHost::enabled_services() const {
  uint32_t bits = 0;
  for (const MethodOfService& each : kMethods) {
    if (dispatcher_.Serves(each.method)) {
      bits |= BitOf(each.service);
    }
  }
  return bits;
}

}  // namespace tandem
