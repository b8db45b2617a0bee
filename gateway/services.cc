#include "gateway/services.h"

#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "gateway/agent_frames.h"
#include "gateway/answers.h"
#include "gateway/connections.h"
#include "gateway/engine_items.h"
#include "gateway/grpc_errors.h"
#include "gateway/message_bytes.h"
#include "gateway/relay_calls.h"
#include "gateway/relay_stream.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/camera.pb.h"
#include "schema/protos/hazel/debug.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "schema/protos/hazel/mujoco_scene.pb.h"
#include "schema/protos/hazel/scene.pb.h"
#include "schema/protos/hazel/telemetry.pb.h"
#include "schema/protos/hazel/viewport.pb.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// A rendered image may take so long the first time.
constexpr double kMostCallSecs = 30;

// `path`: "/Service/Name".
grpc::Status NotServed(absl::string_view path) {
  constexpr size_t kShown = 80;
  return {grpc::StatusCode::UNIMPLEMENTED,
          absl::StrCat(PrintableHead(path.substr(path.rfind('/') + 1), kShown),
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

// A call with one response, and its messages. End deletes it.
class UnaryCall {
 public:
  // `response`: gRPC sends these bytes when the call ends.
  UnaryCall(Gateway* gateway, CallbackServerContext* context,
            const Message& request_type, const Message& response_type,
            grpc::ByteBuffer* response)
      : gateway_(gateway),
        context_(context),
        reactor_(context->DefaultReactor()),
        request_(request_type.New()),
        response_(response_type.New()),
        bytes_(response) {}

  void End(const grpc::Status& status) {
    if (status.ok()) *bytes_ = BytesOf(*response_);
    ServerUnaryReactor* const reactor = reactor_;
    delete this;
    reactor->Finish(status);
  }
  void End(const absl::Status& status) { End(ToGrpc(status)); }

  // Adds `answer`, which returns the call's status, to a queue.
  template <typename Answer>
  void EndBy(WorkQueue* queue, Answer answer) {
    const auto work = [this, answer, call = engine_call()] {
      End(answer(call));
    };
    if (!queue->Add(work)) End(TooManyCalls());
  }

  EngineCall engine_call() const {
    return {
        .gateway = gateway_, .deadline = DeadlineOf(*context_), .peer = peer()};
  }
  bool is_cancelled() const { return context_->IsCancelled(); }
  std::string peer() const { return context_->peer(); }
  Gateway* gateway() const { return gateway_; }
  ServerUnaryReactor* reactor() const { return reactor_; }
  Message* request() const { return request_.get(); }
  Message* response() const { return response_.get(); }

 private:
  ~UnaryCall() = default;

  Gateway* const gateway_;
  CallbackServerContext* const context_;
  ServerUnaryReactor* const reactor_;
  const std::unique_ptr<Message> request_;
  const std::unique_ptr<Message> response_;
  grpc::ByteBuffer* const bytes_;
};

void StartStep(const MethodDescriptor& /*rpc*/, UnaryCall* call) {
  Gateway* const gateway = call->gateway();
  const std::string peer = call->peer();
  absl::StatusOr<RewardTerms> terms = gateway->connections.BeginStep(peer);
  if (!terms.ok()) return call->End(terms.status());
  const auto step = std::make_shared<StepCall>(
      static_cast<const pb::StepRequest*>(call->request()),
      static_cast<pb::StepResponse*>(call->response()), *std::move(terms),
      [call] { return call->is_cancelled(); },
      [call](const absl::Status& status) { call->End(status); });
  // A step does not overtake those that wait.
  const ClientSlot::Tried tried = gateway->steps.IsIdle()
                                      ? gateway->slot.TryStep(step)
                                      : ClientSlot::Tried::kNotSent;
  if (tried == ClientSlot::Tried::kSent) {
    gateway->steps.AddFirst([gateway, step] { gateway->slot.Step(step); });
  } else if (tried == ClientSlot::Tried::kNotSent &&
             !gateway->steps.Add([gateway, step, peer] {
               // The connection may have ended meanwhile.
               const auto begun = gateway->connections.BeginStep(peer);
               if (!begun.ok()) return step->finish(begun.status());
               gateway->slot.Step(step);
             })) {
    call->End(TooManyCalls());
  }
}

// Starts a call of an RPC.
using Start = void (*)(const MethodDescriptor& rpc, UnaryCall* call);

void StartEngine(const MethodDescriptor& rpc, UnaryCall* call) {
  call->EndBy(&call->gateway()->calls, [&rpc, call](const EngineCall& engine) {
    return Relay(engine, MethodOf(rpc.name()), *call->request(),
                 call->response());
  });
}

template <typename Request, typename Response, typename... Limit>
absl::Status Exchange(absl::Status (ClientSlot::*exchange)(const Request&,
                                                           Response*, Limit...),
                      const EngineCall& engine, UnaryCall* call) {
  return (engine.gateway->slot.*exchange)(
      static_cast<const Request&>(*call->request()),
      static_cast<Response*>(call->response()), Limit(engine.deadline)...);
}

// In the order of the steps.
template <auto kExchange>
void StartExchange(const MethodDescriptor& /*rpc*/, UnaryCall* call) {
  call->EndBy(
      &call->gateway()->steps,
      [call](const EngineCall& engine) -> absl::Status {
        TANDEM_RETURN_IF_ERROR(
            engine.gateway->connections.BeginStep(engine.peer).status());
        return Exchange(kExchange, engine, call);
      });
}

template <typename Request, typename Response>
void StartAnswer(const MethodDescriptor& /*rpc*/, UnaryCall* call) {
  const auto& request = static_cast<const Request&>(*call->request());
  auto* const response = static_cast<Response*>(call->response());
  if constexpr (requires { Answer(request, response); }) {
    call->End(Answer(request, response));
  } else {
    call->EndBy(&call->gateway()->calls,
                [&request, response](const EngineCall& engine) {
                  return Answer(engine, request, response);
                });
  }
}

struct Own {
  absl::string_view served_by;
  Start start;  // nullptr: a stream
};

// The RPCs that are no method of the engine, by the type of their request.
const Own* FindOwn(const MethodDescriptor& rpc) {
#define TANDEM_OWN(request, by, start)       \
  {                                          \
    pb::request::descriptor(), { by, start } \
  }
#define TANDEM_ANSWER(request, response) \
  TANDEM_OWN(request, "gateway", (&StartAnswer<pb::request, pb::response>))
  static const auto* const kOwn =
      new absl::flat_hash_map<const google::protobuf::Descriptor*, Own>{
          TANDEM_OWN(StepRequest, "step", &StartStep),
          TANDEM_OWN(ResetAgentRequest, "step",
                     &StartExchange<&ClientSlot::Reset>),
          TANDEM_OWN(SetActionGroupRequest, "step",
                     &StartExchange<&ClientSlot::SetGroup>),
          TANDEM_OWN(ResetSceneRequest, "step",
                     &StartExchange<&ClientSlot::ResetScene>),
          TANDEM_OWN(StreamAgentRequest, "gateway", nullptr),
          TANDEM_ANSWER(ProgressReport, ProgressAck),
          TANDEM_ANSWER(GetCapabilityManifestRequest,
                        GetCapabilityManifestResponse),
          TANDEM_ANSWER(ValidateTaskContractRequest,
                        ValidateTaskContractResponse),
          TANDEM_ANSWER(NegotiateTaskRequest, NegotiateTaskResponse),
          TANDEM_ANSWER(ListRobotControllersRequest,
                        ListRobotControllersResponse),
          TANDEM_ANSWER(ListPolicyDescriptorsRequest,
                        ListPolicyDescriptorsResponse),
          TANDEM_ANSWER(GetObservationRequest, GetObservationResponse),
          TANDEM_ANSWER(SendControlRequest, SendControlResponse),
          TANDEM_ANSWER(EnterPlayModeRequest, EnterPlayModeResponse),
          TANDEM_ANSWER(ExitPlayModeRequest, ExitPlayModeResponse),
          TANDEM_ANSWER(GetCameraConfigRequest, CameraConfigResponse),
          TANDEM_ANSWER(SetCameraConfigRequest, CameraConfigAck),
      };
#undef TANDEM_ANSWER
#undef TANDEM_OWN
  const auto found = kOwn->find(rpc.input_type());
  return found == kOwn->end() ? nullptr : &found->second;
}

const Message& DefaultOf(const google::protobuf::Descriptor* type) {
  return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(
      type);
}

// A service of the protos. protoc's plugin would generate the same, a class for
// each, which takes minutes to compile; so would a template for each type of
// message. gRPC's public generic service would need neither, but the server's
// reflection lists no service that only that one serves.
class RelayService final : public grpc::Service {
 public:
  RelayService(Gateway* gateway, const ServiceDescriptor& service)
      : gateway_(gateway) {
    for (int i = 0; i < service.method_count(); ++i) {
      const MethodDescriptor& rpc = *service.method(i);
      if (rpc.server_streaming()) {
        AddStream(rpc);
      } else {
        AddUnary(rpc);
      }
    }
  }

 private:
  using Bytes = grpc::ByteBuffer;
  using Type = grpc::internal::RpcMethod;

  void AddUnary(const MethodDescriptor& rpc) {
    const Own* const own = FindOwn(rpc);
    const Start start = own == nullptr ? &StartEngine : own->start;
    const auto receive = [this, &rpc, start](CallbackServerContext* context,
                                             const Bytes* request,
                                             Bytes* response) {
      auto* const call =
          new UnaryCall(gateway_, context, DefaultOf(rpc.input_type()),
                        DefaultOf(rpc.output_type()), response);
      ServerUnaryReactor* const reactor = call->reactor();
      const grpc::Status parsed = Parse(*request, call->request());
      if (parsed.ok()) {
        start(rpc, call);
      } else {
        call->End(parsed);
      }
      return reactor;
    };
    Add(rpc, Type::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Bytes, Bytes>(receive));
  }

  void AddStream(const MethodDescriptor& rpc) {
    const auto receive = [this, &rpc](CallbackServerContext* context,
                                      const Bytes* bytes) {
      const std::unique_ptr<Message> request(DefaultOf(rpc.input_type()).New());
      const grpc::Status parsed = Parse(*bytes, request.get());
      if (!parsed.ok()) return RelayStream::Ended(parsed);
      return RelayStream::Start(&gateway_->streams, context,
                                ItemsOf(rpc, *request));
    };
    Add(rpc, Type::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Bytes, Bytes>(
            receive));
  }

  std::unique_ptr<StreamItems> ItemsOf(const MethodDescriptor& rpc,
                                       const Message& request) const {
    if (FindOwn(rpc) != nullptr) {
      return std::make_unique<AgentFrames>(
          &gateway_->slot, static_cast<const pb::StreamAgentRequest&>(request));
    }
    return std::make_unique<EngineItems>(&gateway_->link, MethodOf(rpc.name()),
                                         request, DefaultOf(rpc.output_type()));
  }

  void Add(const MethodDescriptor& rpc, Type::RpcType type,
           grpc::internal::MethodHandler* handler) {
    // gRPC does not copy the path.
    const std::string& path = paths_.emplace_back(
        absl::StrCat("/", rpc.service()->full_name(), "/", rpc.name()));
    AddMethod(
        new grpc::internal::RpcServiceMethod(path.c_str(), type, nullptr));
    MarkMethodCallback(static_cast<int>(paths_.size()) - 1, handler);
  }

  Gateway* const gateway_;
  std::deque<std::string> paths_;
};

std::vector<const ServiceDescriptor*> AllServices() {
  std::vector<const ServiceDescriptor*> services;
  for (const auto* const message :
       {pb::StepRequest::descriptor(), pb::JointState::descriptor(),
        pb::FullState::descriptor(), pb::TelemetryFrame::descriptor(),
        pb::EntityInfo::descriptor(), pb::CameraInfo::descriptor(),
        pb::ViewportStreamConfig::descriptor(),
        pb::DebugDrawRequest::descriptor()}) {
    services.push_back(message->file()->service(0));
  }
  return services;
}

// The refusal of one call. Deletes itself.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& path) { Finish(NotServed(path)); }
  void OnDone() override { delete this; }
};

class Refusals final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Refusal(context->method());
  }
};

}  // namespace

std::vector<ServedRpc> ServedRpcs() {
  std::vector<ServedRpc> rpcs;
  for (const ServiceDescriptor* const service : AllServices()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const Own* const own = FindOwn(*service->method(i));
      rpcs.push_back({.rpc = service->method(i),
                      .served_by = own == nullptr ? "engine" : own->served_by});
    }
  }
  return rpcs;
}

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  for (const ServiceDescriptor* const service : AllServices()) {
    services.push_back(std::make_unique<RelayService>(gateway, *service));
  }
  return services;
}

std::unique_ptr<grpc::CallbackGenericService> MakeRefusals() {
  return std::make_unique<Refusals>();
}

}  // namespace tandem::gateway
