// Requests for frames, between both ends of the protocol in one process.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "transport/client_side.h"
#include "transport/memory/region_plan.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

RegionSpec SpecWithFrames() {
  RegionSpec spec = EchoSpec();
  spec.frames = {.width = 2, .height = 2, .capacity = 2};
  return spec;
}

using SessionFrames = SessionTest;

class SessionWithFrames : public EchoSession {
 protected:
  SessionWithFrames() : EchoSession(SpecWithFrames()) {}
};

TEST_F(SessionWithFrames, EachRequestIsAnsweredBetweenSteps) {
  ASSERT_TRUE(client_.has_frames());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(client_.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
    ASSERT_EQ(Step(client_, kActions), ErrorCode::kOk);
  }
  EXPECT_EQ(engine_.steps(), 1000);
}

TEST_F(SessionFrames, AnEngineWithoutARingIsNotAsked) {
  EchoEngine engine(name_, EchoSpec());
  ClientSide client = AttachOrFail(name_);
  EXPECT_FALSE(client.has_frames());
  EXPECT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kUnsupported);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST_F(SessionWithFrames, NoRequestWhileAStepIsPending) {
  ASSERT_EQ(client_.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client_.AwaitFrame(Deadline::After(20)), ErrorCode::kStepPending);
  EXPECT_EQ(client_.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(client_.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
}

TEST_F(SessionWithFrames, EngineThatDrawsNothingTimesOutAndCanStep) {
  engine_.IgnoreFrames();
  EXPECT_EQ(client_.AwaitFrame(Deadline::After(0.01)), ErrorCode::kStepTimeout);
  const absl::Status said = client_.Explain(ErrorCode::kStepTimeout);
  EXPECT_TRUE(absl::StrContains(said.message(), "drew no frame")) << said;
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
}

TEST_F(SessionFrames, InterruptedRequestLeavesNoStepPending) {
  static std::atomic<bool> interrupts{false};  // the hook has no captures
  EchoEngine engine(name_, SpecWithFrames());
  engine.IgnoreFrames();
  ClientSide client =
      AttachOrFail(name_, {.interrupted = [] {
                     // relaxed: the flag carries no other data.
                     return interrupts.load(std::memory_order_relaxed);
                   }});
  // relaxed: as above.
  interrupts.store(true, std::memory_order_relaxed);
  EXPECT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kInterrupted);
  interrupts.store(false, std::memory_order_relaxed);
  EXPECT_FALSE(client.pending());
  const absl::Status said = client.Explain(ErrorCode::kInterrupted);
  EXPECT_TRUE(absl::StrContains(said.message(), "no step or reset is pending"))
      << said;
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST_F(SessionFrames, AnEngineThatLeavesEndsTheWait) {
  auto engine = std::make_unique<EchoEngine>(name_, SpecWithFrames());
  engine->IgnoreFrames();
  ClientSide client = AttachOrFail(name_);
  std::thread end([&] {
    while (engine->frames_wanted() == 0) std::this_thread::yield();
    engine.reset();
  });
  EXPECT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kPeerGone);
  end.join();
  EXPECT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kPeerGone);
}

TEST_F(SessionWithFrames, AnotherThreadOfTheEngineCallsItsStepper) {
  for (int i = 1; i <= 100; ++i) {
    const int before = engine_.frames_wanted();
    engine_.side().WakeStepThread();
    if (i % 2 == 0) {
      ASSERT_EQ(Step(client_, kActions), ErrorCode::kOk);
    }
    while (engine_.frames_wanted() == before) std::this_thread::yield();
  }
}

TEST_F(SessionWithFrames, GarbledRequestIsAnsweredWithoutOtherEffect) {
  for (const uint32_t scribble : {0xFFFFFFFFu, 0u, 7u}) {
    // relaxed: imitates a foreign write.
    client_.mapping()->header()->frame_request.store(scribble,
                                                     std::memory_order_relaxed);
    ASSERT_EQ(client_.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
    ASSERT_EQ(Step(client_, kActions), ErrorCode::kOk);
  }
}

}  // namespace
}  // namespace tandem
