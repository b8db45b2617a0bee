// Requests for frames, between both ends of the protocol in one process.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/client_side.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

RegionSpec SpecWithFrames() {
  RegionSpec spec = EchoSpec();
  spec.frames = {.width = 2, .height = 2, .capacity = 2};
  return spec;
}

TEST(SessionFrames, EachRequestIsAnsweredBetweenSteps) {
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, SpecWithFrames());
  ClientSide client = AttachOrFail(name);
  ASSERT_TRUE(client.has_frames());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
    ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  EXPECT_EQ(engine.steps(), 1000);
}

TEST(SessionFrames, AnEngineWithoutARingIsNotAsked) {
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, EchoSpec());
  ClientSide client = AttachOrFail(name);
  EXPECT_FALSE(client.has_frames());
  EXPECT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kUnsupported);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST(SessionFrames, NoRequestWhileAStepIsPending) {
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, SpecWithFrames());
  ClientSide client = AttachOrFail(name);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kStepPending);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
}

TEST(SessionFrames, EngineThatDrawsNothingTimesOutAndCanStep) {
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, SpecWithFrames());
  engine.IgnoreFrames();
  ClientSide client = AttachOrFail(name);
  EXPECT_EQ(client.AwaitFrame(Deadline::After(0.01)), ErrorCode::kStepTimeout);
  const absl::Status said = client.Explain(ErrorCode::kStepTimeout);
  EXPECT_TRUE(absl::StrContains(said.message(), "drew no frame")) << said;
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST(SessionFrames, InterruptedRequestLeavesNoStepPending) {
  static std::atomic<bool> interrupts{false};  // the hook has no captures
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, SpecWithFrames());
  engine.IgnoreFrames();
  ClientSide client =
      AttachOrFail(name, {.interrupted = [] {
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

TEST(SessionFrames, AnEngineThatLeavesEndsTheWait) {
  const std::string name = UniqueRegionName("frames");
  auto engine = std::make_unique<EchoEngine>(name, SpecWithFrames());
  engine->IgnoreFrames();
  ClientSide client = AttachOrFail(name);
  std::thread end([&] {
    while (engine->frames_wanted() == 0) std::this_thread::yield();
    engine.reset();
  });
  EXPECT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kPeerGone);
  end.join();
  EXPECT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kPeerGone);
}

TEST(SessionFrames, AnotherThreadOfTheEngineCallsItsStepper) {
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, SpecWithFrames());
  ClientSide client = AttachOrFail(name);
  for (int i = 1; i <= 100; ++i) {
    const int before = engine.frames_wanted();
    engine.side().WakeStepThread();
    if (i % 2 == 0) {
      ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
    }
    while (engine.frames_wanted() == before) std::this_thread::yield();
  }
}

TEST(SessionFrames, GarbledRequestIsAnsweredWithoutOtherEffect) {
  const std::string name = UniqueRegionName("frames");
  EchoEngine engine(name, SpecWithFrames());
  ClientSide client = AttachOrFail(name);
  for (const uint32_t scribble : {0xFFFFFFFFu, 0u, 7u}) {
    // relaxed: imitates a foreign write.
    client.mapping()->header()->frame_request.store(scribble,
                                                    std::memory_order_relaxed);
    ASSERT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
    ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
}

}  // namespace
}  // namespace tandem
