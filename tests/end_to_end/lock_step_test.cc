// Lock-step between two real processes: each exchange raises frame_seq by one
// and applies its action once. This holds with stopped processes and on one
// core.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/testing/child_process.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "tests/end_to_end/counting_engine.h"
#include "tests/end_to_end/serve_until_signal.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/step_arrays.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 3;

// Binds this process, and those it forks, to the first core it may use.
void BindToOneCore() {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    return;
  }
  FAIL() << "no core allowed";
}

struct CoreBinding {
  CoreBinding() {
    sched_getaffinity(0, sizeof(before), &before);
    BindToOneCore();
  }
  ~CoreBinding() { sched_setaffinity(0, sizeof(before), &before); }
  cpu_set_t before;
};

// A value that no nearby exchange has, exact as a float.
float ActionOf(uint64_t exchange, uint32_t env) {
  return static_cast<float>((exchange * 7 + env) % 1'000'003);
}

// The client process. Reports failures on stderr; returns 0 without a failure.
int Exchange(const std::string& name, WaitStrategy wait, uint64_t exchanges) {
  absl::StatusOr<ClientSide> client =
      ClientSide::Attach(name, {.timeout_secs = 60, .wait = wait});
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }
  const StepArrays& arrays = client->arrays();
  const LrbcHeader& header = *client->mapping()->header();
  const uint64_t first_seq = header.frame_seq.load(std::memory_order_acquire);
  std::vector<float> actions(kEnvs);
  for (uint64_t i = 0; i < exchanges; ++i) {
    for (uint32_t env = 0; env < kEnvs; ++env) actions[env] = ActionOf(i, env);
    const ErrorCode code = client->Step(actions, 120);
    if (code != ErrorCode::kOk) {
      std::fprintf(stderr, "exchange %lu: %s\n", i,
                   client->Explain(code).ToString().c_str());
      return 2;
    }
    const uint64_t seq = header.frame_seq.load(std::memory_order_acquire);
    if (seq != first_seq + i + 1) {
      std::fprintf(stderr, "exchange %lu: expected frame_seq %lu, found %lu\n",
                   i, first_seq + i + 1, seq);
      return 3;
    }
    for (uint32_t env = 0; env < kEnvs; ++env) {
      const float* row =
          arrays.obs.data() + size_t{env} * CountingEngine::kObsSize;
      if (row[CountingEngine::kSteps] != static_cast<float>(i + 1) ||
          row[CountingEngine::kEcho] != actions[env] ||
          arrays.rewards[env] != actions[env] || arrays.dones[env] != 0) {
        std::fprintf(stderr,
                     "exchange %lu, environment %u: expected %lu steps, echo "
                     "%f; found %f, %f, reward %f, done %d\n",
                     i, env, i + 1, static_cast<double>(actions[env]),
                     static_cast<double>(row[CountingEngine::kSteps]),
                     static_cast<double>(row[CountingEngine::kEcho]),
                     static_cast<double>(arrays.rewards[env]),
                     arrays.dones[env]);
        return 4;
      }
    }
  }
  return 0;
}

// The two processes of a session.
struct Session {
  Session(WaitStrategy wait, uint64_t exchanges)
      : name(UniqueRegionName("lock-step")),
        engine([&] {
          CountingEngine counting(kEnvs, /*episode_steps=*/0);
          EngineHost::Options options;
          options.name = name;
          options.wait = wait;
          return ServeUntilSignal(&counting, options);
        }),
        client([&] { return Exchange(name, wait, exchanges); }) {}

  // Expects exit code 0 from both processes.
  void ExpectCleanEnd() {
    EXPECT_EQ(client.ExitCode(), 0);
    engine.Signal(SIGTERM);
    EXPECT_EQ(engine.ExitCode(), 0);
    EXPECT_NE(access(("/dev/shm/" + name).c_str(), F_OK), 0);
  }

  std::string name;
  ChildProcess engine;
  ChildProcess client;
};

TEST(LockStep, AppliesEveryActionOnceInAMillionExchanges) {
  Session session(WaitStrategy::kAdaptive, 1'000'000);
  session.ExpectCleanEnd();
}

void PauseNanos(int64_t nanos) {
  const timespec pause = {.tv_sec = 0, .tv_nsec = nanos};
  nanosleep(&pause, nullptr);
}

TEST(LockStep, AppliesEveryActionOnceWhileEitherSideIsStoppedAtRandom) {
  Session session(WaitStrategy::kAdaptive, 200'000);
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int64_t> up_to_2_ms(0, 2'000'000);
  int stops = 0;
  while (!session.client.HasEnded()) {
    PauseNanos(up_to_2_ms(random));
    const ChildProcess& side =
        random() % 2 == 0 ? session.engine : session.client;
    if (!side.Stop()) break;
    ++stops;
    PauseNanos(up_to_2_ms(random));
    side.Continue();
  }
  session.ExpectCleanEnd();
  EXPECT_GT(stops, 10);
  RecordProperty("stops", stops);
}

TEST(LockStep, AdaptiveWaitingWorksOnASingleCore) {
  const CoreBinding binding;
  Session session(WaitStrategy::kAdaptive, 10'000);
  session.ExpectCleanEnd();
}

TEST(LockStep, BlockingWorksOnASingleCore) {
  const CoreBinding binding;
  Session session(WaitStrategy::kBlock, 10'000);
  session.ExpectCleanEnd();
}

// Each hand-over waits until the peer's time slice ends.
TEST(LockStep, SpinningWorksOnASingleCore) {
  const CoreBinding binding;
  Session session(WaitStrategy::kSpin, 300);
  session.ExpectCleanEnd();
}

}  // namespace
}  // namespace tandem
