// Both sides of a session as threads over one mapping, for ThreadSanitizer:
// the protocol's own memory orders must synchronize all data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/error_codes.h"
#include "tests/end_to_end/counting_engine.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/step_arrays.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 5;
constexpr uint32_t kEpisodeSteps = 11;

// An engine on its own thread.
struct Served {
  explicit Served(std::string name, WaitStrategy wait = WaitStrategy::kAdaptive)
      : engine(kEnvs, kEpisodeSteps) {
    alarm(300);  // a hang ends the test
    EngineHost::Options options;
    options.name = std::move(name);
    options.wait = wait;
    absl::StatusOr<std::unique_ptr<EngineHost>> made =
        EngineHost::Create(&engine, options);
    EXPECT_TRUE(made.ok()) << made.status();
    host = *std::move(made);
    host->Start();
  }

  CountingEngine engine;
  std::unique_ptr<EngineHost> host;
};

ClientSide MustAttach(const std::string& name,
                      WaitStrategy wait = WaitStrategy::kAdaptive) {
  absl::StatusOr<ClientSide> client =
      ClientSide::Attach(name, {.timeout_secs = 60, .wait = wait});
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

float At(const ClientSide& client, uint32_t env, uint32_t column) {
  return client.arrays().obs[size_t{env} * CountingEngine::kObsSize + column];
}

// Steps once, and checks that the step was applied once, unless a reset hides
// the count.
ErrorCode StepAndCheck(ClientSide& client, float action) {
  std::vector<float> before(kEnvs);
  for (uint32_t env = 0; env < kEnvs; ++env) {
    before[env] = At(client, env, CountingEngine::kSteps);
  }
  const ErrorCode code = client.Step(std::vector<float>(kEnvs, action), 60);
  if (code != ErrorCode::kOk) return code;
  for (uint32_t env = 0; env < kEnvs; ++env) {
    EXPECT_EQ(At(client, env, CountingEngine::kSteps), before[env] + 1);
    EXPECT_EQ(client.arrays().rewards[env], action);
    const bool done = client.arrays().dones[env] != 0;
    EXPECT_EQ(At(client, env, CountingEngine::kEcho), done ? 0 : action);
    if (done) {
      EXPECT_EQ(
          client.arrays().final_obs[size_t{env} * CountingEngine::kObsSize +
                                    CountingEngine::kEcho],
          action);
    }
  }
  return code;
}

class SessionThreads : public testing::TestWithParam<WaitStrategy> {};

TEST_P(SessionThreads, ExchangeInLockStep) {
  // Spinning threads that share a core yield once per time slice.
  const int exchanges = GetParam() == WaitStrategy::kSpin ? 500 : 5000;
  const std::string name = UniqueRegionName("session-thread");
  const Served served(name, GetParam());
  ClientSide client = MustAttach(name, GetParam());
  for (int i = 0; i < exchanges; ++i) {
    ASSERT_EQ(StepAndCheck(client, static_cast<float>(i % 1000)),
              ErrorCode::kOk);
  }
  EXPECT_EQ(client.Stats().exchanges, exchanges);
}

INSTANTIATE_TEST_SUITE_P(Strategies, SessionThreads,
                         testing::Values(WaitStrategy::kSpin,
                                         WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

TEST(SessionThreads, ClientsComeAndGo) {
  const std::string name = UniqueRegionName("session-thread");
  const Served served(name);
  for (int i = 0; i < 100; ++i) {
    ClientSide client = MustAttach(name);
    // The new client's session starts after a reset.
    EXPECT_EQ(At(client, 0, CountingEngine::kEcho), 0);
    ASSERT_EQ(StepAndCheck(client, 2), ErrorCode::kOk);
    // Clients leave by Close, by destruction, or with a step in progress.
    if (i % 3 == 0) {
      EXPECT_EQ(client.Close(), ErrorCode::kOk);
    } else if (i % 3 == 1) {
      EXPECT_EQ(client.Send(std::vector<float>(kEnvs, 3)), ErrorCode::kOk);
    }
  }
}

TEST(SessionThreads, EngineStopsWhileStepsRun) {
  for (int i = 0; i < 30; ++i) {
    const std::string name = UniqueRegionName("session-thread");
    auto served = std::make_unique<Served>(name);
    // Writer: the client's thread; reader: this one.
    std::atomic<int> steps{0};
    ErrorCode last = ErrorCode::kOk;
    std::thread trainer([&] {
      ClientSide client = MustAttach(name);
      while (last == ErrorCode::kOk) {
        last = StepAndCheck(client, 4);
        ++steps;
      }
    });
    while (steps < 20 + i) std::this_thread::yield();
    served->host->Stop();
    served = nullptr;
    trainer.join();
    EXPECT_EQ(last, ErrorCode::kPeerGone);
  }
}

TEST(SessionThreads, SecondThreadInACallIsRefused) {
  const std::string name = UniqueRegionName("session-thread");
  const Served served(name);
  ClientSide client = MustAttach(name);
  std::atomic<bool> stop{false};
  uint64_t refused = 0;
  std::thread other([&] {
    while (!stop) {
      const ErrorCode code = client.Recv(Deadline::Now());
      if (code == ErrorCode::kConcurrentUse) ++refused;
      if (code == ErrorCode::kPeerGone) break;
    }
  });
  uint64_t sent = 0;
  // Without a deadline: with few cores, the other thread may lose its core
  // while it is inside a call.
  while (sent < 300) {
    const ErrorCode code = client.Send(std::vector<float>(kEnvs, 1));
    if (code == ErrorCode::kOk) ++sent;
  }
  stop = true;
  other.join();
  if (client.pending()) {
    EXPECT_EQ(client.Recv(Deadline::After(60)), ErrorCode::kOk);
  }
  EXPECT_EQ(client.Stats().exchanges, sent);
  RecordProperty("refused", static_cast<int>(refused));
}

}  // namespace
}  // namespace tandem
