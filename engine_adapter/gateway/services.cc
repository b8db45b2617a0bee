#include "engine_adapter/gateway/services.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/gateway/agent_frames.h"
#include "engine_adapter/gateway/answers.h"
#include "engine_adapter/gateway/grpc_errors.h"
#include "engine_adapter/gateway/relay_calls.h"
#include "engine_adapter/gateway/relay_stream.h"
#include "engine_adapter/gateway/rpc_table.h"
// gRPC's generated code: each callback method hides the synchronous one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#include "schema/protos/hazel/agent.grpc.pb.h"
#include "schema/protos/hazel/camera.grpc.pb.h"
#include "schema/protos/hazel/debug.grpc.pb.h"
#include "schema/protos/hazel/lidar.grpc.pb.h"
#include "schema/protos/hazel/mujoco.grpc.pb.h"
#include "schema/protos/hazel/mujoco_scene.grpc.pb.h"
#include "schema/protos/hazel/scene.grpc.pb.h"
#include "schema/protos/hazel/telemetry.grpc.pb.h"
#include "schema/protos/hazel/viewport.grpc.pb.h"
#pragma GCC diagnostic pop
#include "transport/base/clock.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// A rendered image may take so long the first time.
constexpr double kMostCallSecs = 30;

grpc::Status NotServed(absl::string_view name, Door door) {
  return {grpc::StatusCode::UNIMPLEMENTED,
          absl::StrCat(name, ": expected an RPC that engines of Tandem have, ",
                       "found one that ",
                       door == Door::kLater
                           ? "this version of tandem-gateway does not serve"
                           : "they have no counterpart of",
                       "; next: tandem-gateway --list_rpcs prints those that "
                       "it serves")};
}

grpc::Status TooManyCalls() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          absl::StrCat("expected at most ", Gateway::kMostWaiting,
                       " calls that wait, found more; next: call again later")};
}

// The client's deadline, or kMostCallSecs if that is earlier.
Deadline DeadlineOf(const CallbackServerContext& context) {
  const std::chrono::duration<double> left =
      context.deadline() - std::chrono::system_clock::now();
  return Deadline::After(std::min(left.count(), kMostCallSecs));
}

absl::Status Exchange(ClientSlot* slot, Deadline deadline,
                      const pb::ResetAgentRequest& request,
                      pb::ResetAgentResponse* response) {
  return slot->Reset(request, response, deadline);
}

absl::Status Exchange(ClientSlot* slot, Deadline deadline,
                      const pb::ResetSceneRequest& request,
                      pb::ResetSceneResponse* response) {
  return slot->ResetScene(request, response, deadline);
}

absl::Status Exchange(ClientSlot* slot, Deadline /*deadline*/,
                      const pb::SetActionGroupRequest& request,
                      pb::SetActionGroupResponse* response) {
  return slot->SetGroup(request, response);
}

// Ends a stream before its first item.
template <typename Response>
class EndedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit EndedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

// What its class needs to start calls.
class Calls {
 public:
  explicit Calls(Gateway* gateway) : gateway_(gateway) {}

  template <Door kDoor, typename Request, typename Response>
  ServerUnaryReactor* Start(absl::string_view name,
                            CallbackServerContext* context,
                            const Request* request, Response* response) const {
    ServerUnaryReactor* const call = context->DefaultReactor();
    if constexpr (kDoor == Door::kNone || kDoor == Door::kLater) {
      call->Finish(NotServed(name, kDoor));
    } else if constexpr (kDoor == Door::kStep) {
      StartExchange(context, call, request, response);
    } else if constexpr (requires { Answer(*request, response); }) {
      call->Finish(ToGrpc(Answer(*request, response)));
    } else if constexpr (kDoor == Door::kGateway) {
      const bool added = gateway_->calls.Add(
          [engine = EngineCall{.gateway = gateway_,
                               .deadline = DeadlineOf(*context),
                               .peer = context->peer()},
           call, request, response] {
            call->Finish(ToGrpc(Answer(engine, *request, response)));
          });
      if (!added) call->Finish(TooManyCalls());
    } else {
      const bool added = gateway_->calls.Add(
          [gateway = gateway_, deadline = DeadlineOf(*context),
           method = MethodOf(name), call, request, response] {
            call->Finish(
                ToGrpc(Relay(gateway, deadline, method, *request, response)));
          });
      if (!added) call->Finish(TooManyCalls());
    }
    return call;
  }

  template <Door kDoor, typename Item, typename Request>
  grpc::ServerWriteReactor<Item>* StartStream(absl::string_view name,
                                              CallbackServerContext* context,
                                              const Request& request) const {
    if constexpr (kDoor == Door::kEngine) {
      const rpc::MethodId method = MethodOf(name);
      return RelayStream<Item>::Start(
          gateway_, context,
          EngineItems<Item>(gateway_, CallOf(method, request),
                            [method](RpcMessage* from, Item* to) {
                              return TakeAnswer(method, from, to);
                            }));
    } else if constexpr (kDoor == Door::kGateway) {
      return RelayStream<Item>::Start(gateway_, context,
                                      AgentFrames(&gateway_->slot, request));
    } else {
      return new EndedStream<Item>(NotServed(name, kDoor));
    }
  }

 private:
  void StartExchange(CallbackServerContext* context, ServerUnaryReactor* call,
                     const pb::StepRequest* request,
                     pb::StepResponse* response) const {
    auto step = std::make_shared<StepCall>(
        request, response, gateway_->connections.BeginStep(context->peer()));
    // A step does not overtake those that wait.
    const ClientSlot::Tried tried = gateway_->steps.IsIdle()
                                        ? gateway_->slot.TryStep(step.get())
                                        : ClientSlot::Tried::kNotSent;
    if (tried == ClientSlot::Tried::kDone) {
      return call->Finish(ToGrpc(step->status));
    }
    auto finish = [gateway = gateway_, call, step] {
      gateway->slot.Finish(step.get());
      call->Finish(ToGrpc(step->status));
    };
    if (tried == ClientSlot::Tried::kSent) {
      gateway_->steps.AddFirst(std::move(finish));
    } else if (!gateway_->steps.Add(std::move(finish))) {
      call->Finish(TooManyCalls());
    }
  }

  // Other calls that follow the order of the steps.
  template <typename Request, typename Response>
  void StartExchange(CallbackServerContext* context, ServerUnaryReactor* call,
                     const Request* request, Response* response) const {
    gateway_->connections.BeginStep(context->peer());
    const bool added = gateway_->steps.Add([slot = &gateway_->slot,
                                            deadline = DeadlineOf(*context),
                                            call, request, response] {
      call->Finish(ToGrpc(Exchange(slot, deadline, *request, response)));
    });
    if (!added) call->Finish(TooManyCalls());
  }

  Gateway* const gateway_;
};

#define TANDEM_UNARY(name, Request, Response, door)                            \
  ServerUnaryReactor* name(CallbackServerContext* context,                     \
                           const pb::Request* request, pb::Response* response) \
      override {                                                               \
    return calls_.Start<Door::door>(#name, context, request, response);        \
  }
#define TANDEM_STREAM(name, Request, Response, door)                         \
  grpc::ServerWriteReactor<pb::Response>* name(                              \
      CallbackServerContext* context, const pb::Request* request) override { \
    return calls_.StartStream<Door::door, pb::Response>(#name, context,      \
                                                        *request);           \
  }
#define TANDEM_SERVICE(Service, ROWS)                                 \
  class Service##Server final : public pb::Service::CallbackService { \
   public:                                                            \
    explicit Service##Server(Gateway* gateway) : calls_(gateway) {}   \
    ROWS(TANDEM_UNARY, TANDEM_STREAM)                                 \
   private:                                                           \
    Calls calls_;                                                     \
  };

TANDEM_SERVICE(AgentService, TANDEM_AGENT_RPCS)
TANDEM_SERVICE(MujocoService, TANDEM_MUJOCO_RPCS)
TANDEM_SERVICE(MujocoSceneService, TANDEM_MUJOCO_SCENE_RPCS)
TANDEM_SERVICE(TelemetryService, TANDEM_TELEMETRY_RPCS)
TANDEM_SERVICE(SceneService, TANDEM_SCENE_RPCS)
TANDEM_SERVICE(CameraService, TANDEM_CAMERA_RPCS)
TANDEM_SERVICE(ViewportService, TANDEM_VIEWPORT_RPCS)
TANDEM_SERVICE(DebugService, TANDEM_DEBUG_RPCS)
TANDEM_SERVICE(LidarService, TANDEM_LIDAR_RPCS)

#undef TANDEM_SERVICE
#undef TANDEM_STREAM
#undef TANDEM_UNARY

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<AgentServiceServer>(gateway));
  services.push_back(std::make_unique<MujocoServiceServer>(gateway));
  services.push_back(std::make_unique<MujocoSceneServiceServer>(gateway));
  services.push_back(std::make_unique<TelemetryServiceServer>(gateway));
  services.push_back(std::make_unique<SceneServiceServer>(gateway));
  services.push_back(std::make_unique<CameraServiceServer>(gateway));
  services.push_back(std::make_unique<ViewportServiceServer>(gateway));
  services.push_back(std::make_unique<DebugServiceServer>(gateway));
  services.push_back(std::make_unique<LidarServiceServer>(gateway));
  return services;
}

}  // namespace tandem::gateway
