// An engine process sleeps on the core of its client process. Whatever happens
// to either, its own code runs with all cores that it had.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/testing/child_process.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/shared_word.h"
#include "transport/client_side.h"
#include "transport/memory/observed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

constexpr int64_t kWatchdogNs = 60'000'000'000;

cpu_set_t CoreSetOf(pid_t pid) {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(pid, sizeof(cores), &cores), 0);
  return cores;
}

int CoresOf(pid_t pid) {
  const cpu_set_t cores = CoreSetOf(pid);
  return CPU_COUNT(&cores);
}

// The calling thread stays on its core, so that the engine finds it there.
void StayHere() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  EXPECT_EQ(sched_setaffinity(0, sizeof(here), &here), 0);
}

// Its environments observe with how many cores they are stepped.
int ServeCores(const std::string& name, WaitStrategy wait) {
  EngineSide side = OpenSide(name, EchoSpec(), {.region = {}, .wait = wait});
  for (;;) {
    switch (side.Next(Deadline::Infinite())) {
      case EngineEvent::kClientArrived:
        side.AcknowledgeAttach(absl::OkStatus());
        break;
      case EngineEvent::kExchange:
        side.arrays().obs[0] = static_cast<float>(CoresOf(0));
        side.Publish();
        break;
      default:
        break;
    }
  }
}

class SessionCores : public testing::TestWithParam<WaitStrategy> {
 protected:
  void SetUp() override {
    if (all_cores_ == 1) GTEST_SKIP() << "one core";
  }
  void TearDown() override { sched_setaffinity(0, sizeof(all_), &all_); }

  // Steps after a millisecond of policy each, until so many of the steps began
  // on the client's core. Returns the client.
  ClientSide StepOnASharedCore(uint64_t exchanges) {
    StayHere();
    ClientSide client = AttachOrFail(name_, {.wait = GetParam()});
    const int64_t begin_ns = MonotonicNanos();
    while (client.Stats().shared_core_exchanges < exchanges) {
      Step(client);
      if (HasFailure() || MonotonicNanos() - begin_ns > kWatchdogNs) {
        ADD_FAILURE() << "the engine did not share the client's core";
        break;
      }
    }
    return client;
  }
  void Step(ClientSide& client) {
    usleep(1'000);
    const ErrorCode code = client.Step(std::vector<float>(6), 20);
    ASSERT_EQ(code, ErrorCode::kOk) << client.Explain(code);
    ASSERT_EQ(client.arrays().obs[0], static_cast<float>(all_cores_));
  }
  static uint32_t CoreOf(const SharedWord<uint32_t>& word) {
    return word.load(std::memory_order_relaxed);  // relaxed: a hint
  }
  // Until the engine shares no core. Then it has all of them, again and again.
  void AwaitAllCores() {
    const int64_t begin_ns = MonotonicNanos();
    for (int whole = 0; whole < 20; usleep(1'000)) {
      const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name_);
      ASSERT_TRUE(file.ok()) << file.status();
      uint32_t core = 0;
      ASSERT_TRUE(
          file->Read(offsetof(LrbcHeader, engine_core), &core, sizeof(core)));
      const bool shares = core != 0;
      whole = !shares && CoresOf(engine_.pid()) == all_cores_ ? whole + 1 : 0;
      ASSERT_LT(MonotonicNanos() - begin_ns, kWatchdogNs);
    }
  }
  // Steps without a core to share.
  void ExpectKeepsItsCore(const ClientSide::Options& options) {
    ClientSide client = AttachOrFail(name_, options);
    const LrbcHeader& header = *client.mapping()->header();
    for (int i = 0; i < 30; ++i) {
      Step(client);
      EXPECT_EQ(CoreOf(header.client_core), 0U);
    }
    EXPECT_EQ(CoreOf(header.engine_core), 0U);
    EXPECT_EQ(client.Stats().shared_core_exchanges, 0U);
  }

  const std::string name_ = UniqueRegionName("cores");
  const cpu_set_t all_ = CoreSetOf(0);
  const int all_cores_ = CPU_COUNT(&all_);
  const ChildProcess engine_{[this] { return ServeCores(name_, GetParam()); }};
};

TEST_P(SessionCores, EachStepHasAllCores) {
  const ClientSide client = StepOnASharedCore(20);
  EXPECT_EQ(CoreOf(client.mapping()->header()->client_core),
            static_cast<uint32_t>(sched_getcpu() + 1));
}

TEST_P(SessionCores, AClientMayKeepItsCoreAfterOneThatDidNot) {
  StepOnASharedCore(8);
  ExpectKeepsItsCore({.wait = GetParam(), .share_core = false});
  StepOnASharedCore(8);
  ExpectKeepsItsCore({.wait = WaitStrategy::kSpin});
}

// In whichever thread it was attached.
TEST_P(SessionCores, AStepByARealTimeThreadSharesNoCore) {
  ClientSide client = StepOnASharedCore(8);
  const sched_param priority = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    GTEST_SKIP() << "this user may not have a real-time policy";
  }
  Step(client);
  EXPECT_EQ(CoreOf(client.mapping()->header()->client_core), 0U);
  AwaitAllCores();
  const sched_param none = {};
  EXPECT_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

TEST_P(SessionCores, AClientThatComputesWhileTheEngineStepsKeepsItsCore) {
  ClientSide client = StepOnASharedCore(8);
  const uint64_t shared = client.Stats().shared_core_exchanges;
  ASSERT_EQ(client.Send(std::vector<float>(6)), ErrorCode::kOk);
  EXPECT_EQ(CoreOf(client.mapping()->header()->client_core), 0U);
  ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_LE(client.Stats().shared_core_exchanges, shared + 1);
}

TEST_P(SessionCores, AFrozenAndAKilledClientLeaveTheEngineAllCores) {
  for (const bool frozen : {true, false}) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const ChildProcess client([&] {
      ClientSide side = StepOnASharedCore(8);
      if (HasFailure() || write(ready[1], "", 1) != 1) return 1;
      while (!HasFailure()) Step(side);
      return 1;
    });
    close(ready[1]);
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1) << "the client failed, see above";
    close(ready[0]);
    ASSERT_FALSE(client.HasEnded());
    if (frozen) {
      ASSERT_TRUE(client.Stop());
    } else {
      client.Signal(SIGKILL);
    }
    AwaitAllCores();
    if (frozen) client.Continue();
  }
  StepOnASharedCore(8);
}

TEST_P(SessionCores, AnEngineThatWasFrozenOnTheClientsCoreGoesOnWithAllCores) {
  ClientSide client = StepOnASharedCore(8);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(engine_.Stop());
    engine_.Continue();
    Step(client);
  }
  AwaitAllCores();
}

INSTANTIATE_TEST_SUITE_P(Waits, SessionCores,
                         testing::Values(WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock),
                         [](const auto& each) {
                           return std::string(NameOf(each.param));
                         });

}  // namespace
}  // namespace tandem
