#include "tests/faults/counting_peers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/os/shared_region.h"
#include "transport/region.h"

namespace tandem {
namespace {

EngineSide MakeSide(const std::string& name, uint32_t act_size) {
  absl::StatusOr<EngineSide> side =
      EngineSide::Create(name,
                         {.num_envs = CountingServer::kEnvs,
                          .obs_size = 2,
                          .act_size = act_size,
                          .ring_bytes = 4096,
                          .task = "counting"},
                         {});
  const absl::Status status = side.ok() ? side->Open() : side.status();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
  return *std::move(side);
}

}  // namespace

CountingServer::CountingServer(const std::string& name, uint32_t act_size)
    : side_(MakeSide(name, act_size)), counts_(kEnvs, 0) {}

void CountingServer::Serve(int exchanges) {
  while (exchanges != 0) {
    switch (side_.Next(Deadline::Infinite())) {
      case EngineEvent::kExchange:
        Advance();
        side_.Publish();
        --exchanges;
        break;
      case EngineEvent::kClientArrived:
        ResetAll();
        side_.AcknowledgeAttach(absl::OkStatus());
        break;
      case EngineEvent::kClientLeft:
        ResetAll();
        break;
      case EngineEvent::kStopRequested:
        return;
      case EngineEvent::kBrokenClient:
      case EngineEvent::kTimedOut:
      case EngineEvent::kInterrupted:
      case EngineEvent::kFrameWanted:
      case EngineEvent::kAttendants:
      case EngineEvent::kRpcs:
        break;
    }
  }
}

void CountingServer::ResetAll() {
  counts_.assign(kEnvs, 0);
  for (float& value : side_.arrays().obs) value = 0;
}

void CountingServer::Advance() {
  const StepArrays& arrays = side_.arrays();
  for (uint32_t env = 0; env < kEnvs; ++env) {
    if (arrays.resets[env] != 0) {
      counts_[env] = 0;
    } else if (side_.kind() == ExchangeKind::kStep) {
      counts_[env] += 1;
    }
    arrays.obs[2 * env] = counts_[env];
    arrays.obs[2 * env + 1] = arrays.actions[env * arrays.act_size];
  }
}

ErrorCode StepAndCheck(ClientSide& client, float action, float count) {
  const std::vector<float> actions(client.arrays().actions.size(), action);
  const ErrorCode code = client.Step(actions, 20);
  if (code != ErrorCode::kOk) return code;
  for (uint32_t env = 0; env < CountingServer::kEnvs; ++env) {
    EXPECT_EQ(client.arrays().obs[2 * env], count);
    EXPECT_EQ(client.arrays().obs[2 * env + 1], action);
  }
  return ErrorCode::kOk;
}

void ExpectFreshSession(ClientSide& client) {
  for (int step = 1; step <= 3; ++step) {
    const float count = static_cast<float>(step);
    const ErrorCode code = StepAndCheck(client, 10 * count, count);
    ASSERT_EQ(code, ErrorCode::kOk) << client.Explain(code);
  }
}

void ExpectNothingLeft(const std::string& name) {
  // An engine of another test may be removing it, one link after the other.
  const Deadline deadline = Deadline::After(10);
  const auto is_left = [&] {
    return SharedRegion::At(name).has_value() ||
           SharedRegion::At(name, SharedRegion::Link::kSpare).has_value();
  };
  while (is_left() && !deadline.PassedAt(MonotonicNanos())) usleep(1000);
  EXPECT_FALSE(is_left()) << name;
}

}  // namespace tandem
