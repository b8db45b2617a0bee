#include "engine_adapter/gateway/services.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
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
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/camera.pb.h"
#include "schema/protos/hazel/debug.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "schema/protos/hazel/mujoco_scene.pb.h"
#include "schema/protos/hazel/scene.pb.h"
#include "schema/protos/hazel/telemetry.pb.h"
#include "schema/protos/hazel/viewport.pb.h"
#include "transport/base/clock.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// A rendered image may take so long the first time.
constexpr double kMostCallSecs = 30;

grpc::Status NotServed(absl::string_view name) {
  return {grpc::StatusCode::UNIMPLEMENTED,
          absl::StrCat(name,
                       ": expected an RPC that engines of Tandem have, "
                       "found one without a counterpart; next: tandem-gateway "
                       "--list_rpcs prints those that it serves")};
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
    if constexpr (kDoor == Door::kStep) {
      StartExchange(context, call, request, response);
    } else if constexpr (requires { Answer(*request, response); }) {
      call->Finish(ToGrpc(Answer(*request, response)));
    } else {
      const auto answer = [engine = EngineCall{.gateway = gateway_,
                                               .deadline = DeadlineOf(*context),
                                               .peer = context->peer()},
                           name, call, request, response] {
        if constexpr (kDoor == Door::kGateway) {
          call->Finish(ToGrpc(Answer(engine, *request, response)));
        } else {
          call->Finish(
              ToGrpc(Relay(engine, MethodOf(name), *request, response)));
        }
      };
      if (!gateway_->calls.Add(answer)) call->Finish(TooManyCalls());
    }
    return call;
  }

  template <Door kDoor, typename Item, typename Request>
  grpc::ServerWriteReactor<Item>* StartStream(absl::string_view name,
                                              CallbackServerContext* context,
                                              const Request& request) const {
    if constexpr (kDoor == Door::kGateway) {
      return RelayStream<Item>::Start(gateway_, context,
                                      AgentFrames(&gateway_->slot, request));
    } else {
      const rpc::MethodId method = MethodOf(name);
      return RelayStream<Item>::Start(
          gateway_, context,
          EngineItems<Item>(gateway_, CallOf(method, request),
                            [method](RpcMessage* from, Item* to) {
                              return TakeAnswer(method, from, to);
                            }));
    }
  }

 private:
  void StartExchange(CallbackServerContext* context, ServerUnaryReactor* call,
                     const pb::StepRequest* request,
                     pb::StepResponse* response) const {
    const auto step = std::make_shared<StepCall>(
        request, response, gateway_->connections.BeginStep(context->peer()),
        [call](const absl::Status& status) { call->Finish(ToGrpc(status)); });
    // A step does not overtake those that wait.
    const ClientSlot::Tried tried = gateway_->steps.IsIdle()
                                        ? gateway_->slot.TryStep(step)
                                        : ClientSlot::Tried::kNotSent;
    auto go_on = [gateway = gateway_, step] { gateway->slot.Step(step); };
    if (tried == ClientSlot::Tried::kSent) {
      gateway_->steps.AddFirst(std::move(go_on));
    } else if (tried == ClientSlot::Tried::kNotSent &&
               !gateway_->steps.Add(std::move(go_on))) {
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

// A service made of rows. protoc's plugin would generate the same, a class for
// each, which takes minutes to compile.
class TableService final : public grpc::Service {
 public:
  explicit TableService(Gateway* gateway) : calls_(gateway) {}

  // Both texts outlive the service. `path`: "/hazel.rpc.Service/Name".
  template <Door kDoor, typename Request, typename Response>
  void AddUnary(const char* path, const char* name) {
    Add(path, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Request, Response>(
            [this, name](CallbackServerContext* context, const Request* request,
                         Response* response) {
              return calls_.Start<kDoor>(name, context, request, response);
            }));
  }

  template <Door kDoor, typename Request, typename Item>
  void AddStream(const char* path, const char* name) {
    Add(path, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Request, Item>(
            [this, name](CallbackServerContext* context,
                         const Request* request) {
              return calls_.StartStream<kDoor, Item>(name, context, *request);
            }));
  }

  // An RPC that is refused with a text, whatever its messages are.
  void AddRefused(const char* path, const char* name, bool streams) {
    using Bytes = grpc::ByteBuffer;
    if (streams) {
      return Add(
          path, grpc::internal::RpcMethod::SERVER_STREAMING,
          new grpc::internal::CallbackServerStreamingHandler<Bytes, Bytes>(
              [name](CallbackServerContext* /*context*/,
                     const Bytes* /*request*/) {
                return new EndedStream<Bytes>(NotServed(name));
              }));
    }
    Add(path, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Bytes, Bytes>(
            [name](CallbackServerContext* context, const Bytes* /*request*/,
                   Bytes* /*response*/) {
              ServerUnaryReactor* const call = context->DefaultReactor();
              call->Finish(NotServed(name));
              return call;
            }));
  }

 private:
  void Add(const char* path, grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    AddMethod(new grpc::internal::RpcServiceMethod(path, type, nullptr));
    MarkMethodCallback(methods_++, handler);
  }

  const Calls calls_;
  int methods_ = 0;
};

// Rows -> calls of a TableService's functions. The types of a refused RPC need
// not be known.
#define TANDEM_PATH(rpc) "/hazel.rpc." TANDEM_SERVICE "/" #rpc
#define TANDEM_UNARY(rpc, request, response, door) \
  TANDEM_UNARY_##door(rpc, request, response, door)
#define TANDEM_SERVED_UNARY(rpc, request, response, door)                    \
  service->AddUnary<Door::door, pb::request, pb::response>(TANDEM_PATH(rpc), \
                                                           #rpc);
#define TANDEM_UNARY_kEngine TANDEM_SERVED_UNARY
#define TANDEM_UNARY_kStep TANDEM_SERVED_UNARY
#define TANDEM_UNARY_kGateway TANDEM_SERVED_UNARY
#define TANDEM_UNARY_kNone(rpc, request, response, door) \
  service->AddRefused(TANDEM_PATH(rpc), #rpc, /*streams=*/false);
#define TANDEM_STREAM(rpc, request, item, door) \
  TANDEM_STREAM_##door(rpc, request, item, door)
#define TANDEM_SERVED_STREAM(rpc, request, item, door) \
  service->AddStream<Door::door, pb::request, pb::item>(TANDEM_PATH(rpc), #rpc);
#define TANDEM_STREAM_kEngine TANDEM_SERVED_STREAM
#define TANDEM_STREAM_kGateway TANDEM_SERVED_STREAM
#define TANDEM_STREAM_kNone(rpc, request, item, door) \
  service->AddRefused(TANDEM_PATH(rpc), #rpc, /*streams=*/true);

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  const auto add = [&] {
    auto made = std::make_unique<TableService>(gateway);
    TableService* const service = made.get();
    services.push_back(std::move(made));
    return service;
  };
  TableService* service = nullptr;
  service = add();
#define TANDEM_SERVICE "AgentService"
  TANDEM_AGENT_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "MujocoService"
  TANDEM_MUJOCO_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "MujocoSceneService"
  TANDEM_MUJOCO_SCENE_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "TelemetryService"
  TANDEM_TELEMETRY_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "SceneService"
  TANDEM_SCENE_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "CameraService"
  TANDEM_CAMERA_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "ViewportService"
  TANDEM_VIEWPORT_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "DebugService"
  TANDEM_DEBUG_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  service = add();
#define TANDEM_SERVICE "LidarService"
  TANDEM_LIDAR_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  return services;
}

}  // namespace tandem::gateway
