// The row grpc, with the synchronous API on both sides, configured for a server
// with one client: one completion queue, one polling thread, no limit on the
// size of messages, arrays as bytes, and messages that the client reuses.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "tests/benchmark/round_trip.grpc.pb.h"
#include "tests/benchmark/round_trip.pb.h"
#include "tests/benchmark/row.h"

namespace tandem {
namespace {

using benchmark::Actions;
using benchmark::StepEngine;
using benchmark::StepResults;

class TrivialService final : public StepEngine::Service {
 public:
  explicit TrivialService(const Size& size) : size_(size) {}

  grpc::Status Step(grpc::ServerContext*, const Actions* asked,
                    StepResults* results) override {
    if (asked->actions().size() != size_.action_floats() * 4) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              absl::StrCat("expected ", size_.action_floats() * 4,
                           " bytes of actions, found ", asked->actions().size(),
                           ". Next: start both sides with the same sizes")};
    }
    results->mutable_obs()->resize(size_.obs_floats() * 4);
    results->mutable_rewards()->resize(size_t{size_.envs} * 4);
    results->mutable_dones()->resize(size_.envs);
    TrivialWork(size_, reinterpret_cast<const float*>(asked->actions().data()),
                reinterpret_cast<float*>(results->mutable_obs()->data()),
                reinterpret_cast<float*>(results->mutable_rewards()->data()),
                reinterpret_cast<uint8_t*>(results->mutable_dones()->data()));
    return grpc::Status::OK;
  }

 private:
  Size size_;
};

class GrpcRow final : public Row {
 public:
  explicit GrpcRow(const RowOptions& options)
      : size_(options.size),
        address_(absl::StrCat("unix-abstract:", options.region)) {}

  void Serve() override {
    TrivialService service(size_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    using Option = grpc::ServerBuilder::SyncServerOption;
    builder.SetSyncServerOption(Option::NUM_CQS, 1);
    builder.SetSyncServerOption(Option::MIN_POLLERS, 1);
    builder.SetSyncServerOption(Option::MAX_POLLERS, 2);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    Require(server != nullptr,
            absl::StrCat("gRPC: expected to listen at ", address_,
                         ", found that it may not. Next: another --region"));
    server->Wait();
  }

  void Connect() override {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // The server's process may start after this call.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 5);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5);
    const auto channel = grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments);
    Require(channel->WaitForConnected(std::chrono::system_clock::now() +
                                      std::chrono::seconds(30)),
            absl::StrCat("gRPC: expected an answer in 30 s from ", address_,
                         ", found none. Next: see what the engine said above"));
    stub_ = StepEngine::NewStub(channel);
  }

  Results Exchange(const float* actions) override {
    asked_.mutable_actions()->assign(reinterpret_cast<const char*>(actions),
                                     size_.action_floats() * 4);
    grpc::ClientContext context;
    const grpc::Status status = stub_->Step(&context, asked_, &results_);
    if (!status.ok()) {
      Fail(absl::StrCat("gRPC: expected results, found error ",
                        static_cast<int>(status.error_code()), ", ",
                        status.error_message(),
                        ". Next: see what the engine said above"));
    }
    return {reinterpret_cast<const float*>(results_.obs().data()),
            reinterpret_cast<const float*>(results_.rewards().data()),
            reinterpret_cast<const uint8_t*>(results_.dones().data())};
  }

 private:
  Size size_;
  std::string address_;
  std::unique_ptr<StepEngine::Stub> stub_;
  Actions asked_;
  StepResults results_;
};

}  // namespace

std::unique_ptr<Row> MakeGrpcRow(absl::string_view name,
                                 const RowOptions& options) {
  if (name == "grpc") return std::make_unique<GrpcRow>(options);
  return nullptr;
}

}  // namespace tandem
