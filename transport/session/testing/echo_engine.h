// EchoEngine: an engine for tests of the session, on its own thread.
//
// Data flow: actions -> obs, also as fields of one path; counts of requests.
// Ownership: the test; it serves from construction to destruction.
//
//   EchoEngine engine(name, EchoSpec());
//   ClientSide client = AttachOrFail(name);
//   EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "transport/client_side.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"
#include "transport/step_arrays.h"

namespace tandem {

inline RegionSpec EchoSpec() {
  return {.num_envs = 3, .obs_size = 2, .act_size = 2, .task = "echo"};
}

// Returns an open side; the test serves it.
inline EngineSide OpenSide(const std::string& name, const RegionSpec& spec,
                           const EngineSide::Options& options = {}) {
  absl::StatusOr<EngineSide> side = EngineSide::Create(name, spec, options);
  EXPECT_TRUE(side.ok()) << side.status();
  EXPECT_TRUE(side->Open().ok());
  return *std::move(side);
}

// Echoes actions as observations and counts its requests.
class EchoEngine {
 public:
  EchoEngine(std::string name, RegionSpec spec,
             EngineSide::Options options = {})
      : side_(OpenSide(name, spec, options)), thread_([this] { Serve(); }) {}
  ~EchoEngine() {
    side_.RequestStop();
    thread_.join();
  }

  EngineSide& side() { return side_; }
  int steps() const { return steps_; }
  int resets() const { return resets_; }
  int arrivals() const { return arrivals_; }
  int departures() const { return departures_; }
  int broken() const { return broken_; }
  int frames_wanted() const { return frames_wanted_; }
  void IgnoreFrames() { ignore_frames_ = true; }
  void FailNext() { fail_next_ = true; }
  void RefuseNext() { refuse_next_ = true; }

 private:
  void Serve() {
    for (;;) {
      switch (side_.Next(Deadline::Infinite())) {
        case EngineEvent::kStopRequested:
          return;
        case EngineEvent::kExchange:
          // relaxed: set before the client sent the exchange it applies to.
          if (fail_next_.exchange(false, std::memory_order_relaxed)) {
            side_.Fail(ErrorCode::kEngineFailed, "joint 3 \x01 exploded");
            break;
          }
          Advance();
          side_.Publish();
          break;
        case EngineEvent::kClientArrived:
          ++arrivals_;
          // relaxed: as above, for an attach.
          side_.AcknowledgeAttach(
              refuse_next_.exchange(false, std::memory_order_relaxed)
                  ? MakeError(ErrorCode::kEngineFailed, "no model")
                  : absl::OkStatus());
          break;
        case EngineEvent::kClientLeft:
          ++departures_;
          break;
        case EngineEvent::kFrameWanted:
          ++frames_wanted_;
          // relaxed: set before the client attached.
          if (!ignore_frames_.load(std::memory_order_relaxed)) {
            side_.AnswerFrame(side_.frame_request());
          }
          break;
        case EngineEvent::kBrokenClient:
          ++broken_;
          break;
        case EngineEvent::kTimedOut:
        case EngineEvent::kInterrupted:
        case EngineEvent::kAttendants:
        case EngineEvent::kRpcs:
          break;
      }
    }
  }

  void Advance() {
    const StepArrays& arrays = side_.arrays();
    for (const uint8_t flag : arrays.resets) resets_ += flag != 0 ? 1 : 0;
    if (side_.kind() == ExchangeKind::kResetOnly) return;
    ++steps_;
    std::copy(arrays.actions.begin(), arrays.actions.end(), arrays.obs.begin());
    for (const FieldArray& action : arrays.fields) {
      if (action.role != FieldRole::kAction) continue;
      const FieldArray* obs = arrays.Find(FieldRole::kObs, action.path);
      if (obs != nullptr && obs->data.size() == action.data.size()) {
        std::ranges::copy(action.data, obs->data.begin());
      }
    }
  }

  std::atomic<int> steps_{0}, resets_{0}, arrivals_{0}, departures_{0},
      broken_{0}, frames_wanted_{0};
  std::atomic<bool> fail_next_{false}, refuse_next_{false},
      ignore_frames_{false};
  EngineSide side_;
  std::thread thread_;
};

inline ClientSide AttachOrFail(const std::string& name,
                               ClientSide::Options options = {}) {
  absl::StatusOr<ClientSide> client = ClientSide::Attach(name, options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

// Attaches to a side that the test serves.
inline ClientSide AttachTo(EngineSide& side, const std::string& name) {
  std::thread greeter([&] {
    EXPECT_EQ(side.Next(Deadline::After(20)), EngineEvent::kClientArrived);
    side.AcknowledgeAttach(absl::OkStatus());
  });
  ClientSide client = AttachOrFail(name);
  greeter.join();
  return client;
}

inline ErrorCode Step(ClientSide& client, const std::vector<float>& actions) {
  return client.Step(actions, 20);
}

// Waits until `done`, which depends on a live engine. gtest's own time-out is
// the watchdog.
inline void AwaitTrue(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

inline const std::vector<float> kActions = {1, 2, 3, 4, 5, 6};

class SessionTest : public testing::Test {
 protected:
  const std::string name_ = UniqueRegionName("session");
};

class EchoSession : public SessionTest {
 protected:
  explicit EchoSession(const RegionSpec& spec = EchoSpec())
      : engine_(name_, spec) {}

  EchoEngine engine_;
  ClientSide client_ = AttachOrFail(name_);
};

}  // namespace tandem
