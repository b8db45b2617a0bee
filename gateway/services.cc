#include "gateway/services.h"

#include <google/protobuf/message.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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
#include "gateway/rpc_table.h"
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

void StartStep(UnaryCall* call) {
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

// Starts a call of an RPC with this door. Its messages have these types.
template <Door kDoor, typename Request, typename Response>
void Start(const char* name, UnaryCall* call) {
  const auto* const request = static_cast<const Request*>(call->request());
  auto* const response = static_cast<Response*>(call->response());
  if constexpr (kDoor == Door::kEngine) {
    call->EndBy(&call->gateway()->calls,
                [name, request, response](const EngineCall& engine) {
                  return Relay(engine, MethodOf(name), *request, response);
                });
  } else if constexpr (std::is_same_v<Request, pb::StepRequest>) {
    StartStep(call);
  } else if constexpr (kDoor == Door::kStep) {
    // In the order of the steps.
    call->EndBy(
        &call->gateway()->steps,
        [request, response](const EngineCall& engine) -> absl::Status {
          TANDEM_RETURN_IF_ERROR(
              engine.gateway->connections.BeginStep(engine.peer).status());
          return Exchange(&engine.gateway->slot, engine.deadline, *request,
                          response);
        });
  } else if constexpr (requires { Answer(*request, response); }) {
    call->End(Answer(*request, response));
  } else {
    call->EndBy(&call->gateway()->calls,
                [request, response](const EngineCall& engine) {
                  return Answer(engine, *request, response);
                });
  }
}

// A service made of rows. protoc's plugin would generate the same, a class for
// each, which takes minutes to compile; so would a template for each type of
// message.
class TableService final : public grpc::Service {
 public:
  explicit TableService(Gateway* gateway) : gateway_(gateway) {}

  using StartCall = void (*)(const char* name, UnaryCall* call);
  using Items = std::unique_ptr<StreamItems> (*)(Gateway* gateway,
                                                 const char* name,
                                                 const Message& request);

  // The texts and the messages outlive the service. `path`:
  // "/hazel.rpc.Service/Name".
  void AddUnary(const char* path, const char* name, const Message& request_type,
                const Message& response_type, StartCall start) {
    const auto receive = [this, name, &request_type, &response_type, start](
                             CallbackServerContext* context,
                             const Bytes* request, Bytes* response) {
      auto* const call = new UnaryCall(gateway_, context, request_type,
                                       response_type, response);
      ServerUnaryReactor* const reactor = call->reactor();
      const grpc::Status parsed = Parse(*request, call->request());
      if (parsed.ok()) {
        start(name, call);
      } else {
        call->End(parsed);
      }
      return reactor;
    };
    Add(path, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Bytes, Bytes>(receive));
  }

  void AddStream(const char* path, const char* name,
                 const Message& request_type, Items items) {
    const auto receive = [this, name, &request_type, items](
                             CallbackServerContext* context,
                             const Bytes* bytes) {
      const std::unique_ptr<Message> request(request_type.New());
      const grpc::Status parsed = Parse(*bytes, request.get());
      if (!parsed.ok()) return RelayStream::Ended(parsed);
      return RelayStream::Start(&gateway_->streams, context,
                                items(gateway_, name, *request));
    };
    Add(path, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Bytes, Bytes>(
            receive));
  }

 private:
  using Bytes = grpc::ByteBuffer;

  void Add(const char* path, grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    AddMethod(new grpc::internal::RpcServiceMethod(path, type, nullptr));
    MarkMethodCallback(methods_++, handler);
  }

  Gateway* const gateway_;
  int methods_ = 0;
};

template <typename Item>
std::unique_ptr<StreamItems> ItemsOf(Gateway* gateway, const char* name,
                                     const Message& request) {
  if constexpr (std::is_same_v<Item, pb::AgentFrame>) {
    return std::make_unique<AgentFrames>(
        &gateway->slot, static_cast<const pb::StreamAgentRequest&>(request));
  } else {
    return std::make_unique<EngineItems>(&gateway->link, MethodOf(name),
                                         request, Item::default_instance());
  }
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

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  absl::string_view last;
  TableService* service = nullptr;
  const auto service_of = [&](absl::string_view name) {
    if (name != std::exchange(last, name)) {
      auto made = std::make_unique<TableService>(gateway);
      service = made.get();
      services.push_back(std::move(made));
    }
    return service;
  };
#define TANDEM_UNARY(service, rpc, request, response, door)                   \
  service_of(#service)->AddUnary(                                             \
      "/hazel.rpc." #service "/" #rpc, #rpc, pb::request::default_instance(), \
      pb::response::default_instance(),                                       \
      &Start<Door::door, pb::request, pb::response>);
#define TANDEM_STREAM(service, rpc, request, item, door)                 \
  service_of(#service)->AddStream("/hazel.rpc." #service "/" #rpc, #rpc, \
                                  pb::request::default_instance(),       \
                                  &ItemsOf<pb::item>);
  TANDEM_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_UNARY
#undef TANDEM_STREAM
  return services;
}

std::unique_ptr<grpc::CallbackGenericService> MakeRefusals() {
  return std::make_unique<Refusals>();
}

}  // namespace tandem::gateway
