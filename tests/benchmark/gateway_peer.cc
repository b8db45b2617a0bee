// Both ends of the suite `gateway` in C++: a bare gRPC server that answers the
// messages of a Step, and a client.
//
//   gateway_peer serve           # prints HOST:PORT, and serves until its end
//   gateway_peer call HOST:PORT SECONDS ACTIONS
//                                # int64 nanoseconds of each Step, on stdout
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/method_handler.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/end_with_parent.h"
#include "schema/protos/hazel/agent.pb.h"
#include "tests/benchmark/or_exit.h"

namespace tandem {
namespace {

namespace pb = hazel::rpc;

constexpr char kStep[] = "/hazel.rpc.AgentService/Step";
constexpr char kReset[] = "/hazel.rpc.AgentService/ResetAgent";
constexpr int kObservations = 4;
constexpr int64_t kWarmUpNs = 30'000'000;

// Answers as the gateway does for the engine of 1 x 4 x 1, without an engine.
class EchoService final : public grpc::Service {
 public:
  EchoService() {
    AddMethod(new grpc::internal::RpcServiceMethod(
        kStep, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<EchoService, pb::StepRequest,
                                             pb::StepResponse, pb::StepRequest,
                                             pb::StepResponse>(
            [](EchoService*, grpc::ServerContext*,
               const pb::StepRequest* request, pb::StepResponse* response) {
              Answer(*request, response);
              return grpc::Status::OK;
            },
            this)));
    AddMethod(new grpc::internal::RpcServiceMethod(
        kReset, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<
            EchoService, pb::ResetAgentRequest, pb::ResetAgentResponse,
            pb::ResetAgentRequest, pb::ResetAgentResponse>(
            [](EchoService*, grpc::ServerContext*,
               const pb::ResetAgentRequest* /*request*/,
               pb::ResetAgentResponse* response) {
              response->set_success(true);
              return grpc::Status::OK;
            },
            this)));
  }

 private:
  static void Answer(const pb::StepRequest& request,
                     pb::StepResponse* response) {
    float sum = 0;
    for (const float action : request.actions()) sum += action;
    response->set_success(true);
    response->set_physics_step_duration_us(1);
    pb::AgentFrame* const frame = response->mutable_observation();
    frame->set_timestamp_ms(UnixMillis());
    frame->set_frame_number(1);
    for (int i = 0; i < kObservations; ++i) {
      frame->add_observations(sum + static_cast<float>(i));
    }
    *frame->mutable_actions() = request.actions();
    frame->set_agent_name("agent_0");
    (*response->mutable_reward_signals())["reward"] = sum;
    (*response->mutable_termination_flags())["terminated"] = false;
    (*response->mutable_termination_flags())["time_out"] = false;
  }
};

int Serve() {
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  using Option = grpc::ServerBuilder::SyncServerOption;
  builder.SetSyncServerOption(Option::NUM_CQS, 1);
  builder.SetSyncServerOption(Option::MIN_POLLERS, 1);
  builder.SetSyncServerOption(Option::MAX_POLLERS, 2);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Require(server != nullptr, "gRPC: expected to listen at 127.0.0.1");
  std::cout << "127.0.0.1:" << port << std::endl;
  server->Wait();
  return 0;
}

template <typename Request, typename Response>
void Call(grpc::Channel* channel, const char* path, const Request& request,
          Response* response) {
  grpc::ClientContext context;
  const grpc::internal::RpcMethod method(path,
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Status status = grpc::internal::BlockingUnaryCall(
      channel, method, &context, request, response);
  Require(status.ok(), absl::StrCat(path, ": ", status.error_message()));
  Require(response->success(), absl::StrCat(path, ": ", response->message()));
}

int CallFor(const std::string& address, double seconds, int actions) {
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  pb::ResetAgentResponse reset;
  Call(channel.get(), kReset, pb::ResetAgentRequest(), &reset);
  pb::StepRequest request;
  for (int i = 0; i < actions; ++i) request.add_actions(0.5F);
  std::vector<int64_t> nanos;
  const int64_t warm_ns = MonotonicNanos() + kWarmUpNs;
  const Deadline end = Deadline::After(seconds, warm_ns);
  for (int64_t now_ns = 0; nanos.size() < 10 || !end.PassedAt(now_ns);) {
    pb::StepResponse response;
    const int64_t begun_ns = MonotonicNanos();
    Call(channel.get(), kStep, request, &response);
    now_ns = MonotonicNanos();
    if (now_ns >= warm_ns) nanos.push_back(now_ns - begun_ns);
  }
  std::cout.write(reinterpret_cast<const char*>(nanos.data()),
                  static_cast<std::streamsize>(nanos.size() * sizeof(int64_t)));
  std::cout.flush();
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  using namespace tandem;  // NOLINT: this program's
  EndWithParent(SIGKILL, getppid());
  const std::vector<std::string> words(argv + 1, argv + argc);
  int code = 2;
  if (words.size() == 1 && words[0] == "serve") {
    code = Serve();
  } else if (words.size() == 4 && words[0] == "call") {
    code = CallFor(words[1], std::atof(words[2].c_str()),
                   std::atoi(words[3].c_str()));
  }
  std::_Exit(code);  // without gRPC's shutdown, which may take seconds
}
