#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/rpc_client.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

// A session with an engine that acknowledges its client and reads no call.
class RpcSessionTest : public testing::Test {
 protected:
  RpcSessionTest()
      : engine_(EngineSide::Create(name_,
                                   {.num_envs = 1,
                                    .obs_size = 1,
                                    .act_size = 1,
                                    .task = "session"},
                                   {})
                    .value()) {}
  void SetUp() override {
    alarm(60);
    ASSERT_TRUE(engine_.Open().ok());
    serving_ = std::thread([this] {
      for (;;) {
        switch (engine_.Next(Deadline::After(0.001))) {
          case EngineEvent::kStopRequested:
            return;
          case EngineEvent::kClientArrived:
            engine_.AcknowledgeAttach(absl::OkStatus());
            break;
          default:
            break;
        }
      }
    });
    side_ = std::make_unique<ClientSide>(ClientSide::Attach(name_, {}).value());
    session_ = std::make_unique<RpcSession>(side_.get(), RpcClient::Options());
  }
  void TearDown() override {
    engine_.RequestStop();
    serving_.join();
    alarm(0);
  }

  const std::string name_ = UniqueRegionName("rpc_session");
  EngineSide engine_;
  std::thread serving_;
  std::unique_ptr<ClientSide> side_;
  std::unique_ptr<RpcSession> session_;
};

TEST_F(RpcSessionTest, HasOneClientUntilItEnds) {
  const auto first = session_->Client();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(session_->Client().value(), *first);
  session_->End();
  EXPECT_EQ(CodeOf(session_->Client().status()), ErrorCode::kClientClosed);
  session_->End();  // no effect
  session_->Begin();
  const auto second = session_->Client();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(*second, *first);
}

TEST_F(RpcSessionTest, EndEndsTheCallsThatWait) {
  const auto client = session_->Client();
  ASSERT_TRUE(client.ok()) << client.status();
  absl::Status status;
  std::thread caller([&] {
    rpc::EnvelopeT call;
    call.method = rpc::MethodId::GetSceneInfo;
    call.payload.Set(rpc::GetSceneInfoRequestT());
    status = (*client)->Call(call, Deadline::Infinite()).status();
  });
  session_->End();  // before the call, or during it
  caller.join();
  EXPECT_EQ(CodeOf(status), ErrorCode::kClientClosed);
}

TEST_F(RpcSessionTest, AForkedChildIsRefused) {
  const pid_t child = fork();
  if (child == 0) {
    session_->End();  // no effect
    const bool refused =
        CodeOf(session_->Client().status()) == ErrorCode::kForkedChild;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(session_->Client().ok());
}

}  // namespace
}  // namespace tandem
