// Both ends of the protocol in one process: the engine on a thread of its own.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/ring_header.h"
#include "transport/base/error.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_name.h"
#include "transport/memory/unique_region_name.h"
#include "transport/session/client_side.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

constexpr RegionSpec Spec() {
  return {.num_envs = 3, .obs_size = 2, .act_size = 2, .task = "echo"};
}

// Echoes actions as observations and counts what it is asked for.
class EchoEngine {
 public:
  EchoEngine(std::string name, RegionSpec spec,
             EngineSide::Options options = {})
      : side_(Create(name, spec, options)), thread_([this] { Serve(); }) {}
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
  void FailNext() { fail_next_ = true; }
  void RefuseNext() { refuse_next_ = true; }

 private:
  static EngineSide Create(const std::string& name, const RegionSpec& spec,
                           const EngineSide::Options& options) {
    absl::StatusOr<EngineSide> side = EngineSide::Create(name, spec, options);
    EXPECT_TRUE(side.ok()) << side.status();
    EXPECT_TRUE(side->Open().ok());
    return *std::move(side);
  }

  void Serve() {
    for (;;) {
      switch (side_.Next(Deadline::Infinite())) {
        case EngineEvent::kStopRequested:
          return;
        case EngineEvent::kExchange:
          // relaxed: set before the exchange that it is for was sent.
          if (fail_next_.exchange(false, std::memory_order_relaxed)) {
            side_.Fail(ErrorCode::kEngineFailed, "joint 3 \x01 exploded");
            break;
          }
          Advance();
          side_.Publish();
          break;
        case EngineEvent::kClientArrived:
          ++arrivals_;
          // relaxed: as above, for a hello.
          side_.Welcome(refuse_next_.exchange(false, std::memory_order_relaxed)
                            ? MakeError(ErrorCode::kEngineFailed, "no model")
                            : absl::OkStatus());
          break;
        case EngineEvent::kClientLeft:
          ++departures_;
          break;
        case EngineEvent::kBrokenClient:
          ++broken_;
          break;
        case EngineEvent::kTimedOut:
        case EngineEvent::kInterrupted:
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
  }

  std::atomic<int> steps_{0}, resets_{0}, arrivals_{0}, departures_{0},
      broken_{0};
  std::atomic<bool> fail_next_{false}, refuse_next_{false};
  EngineSide side_;
  std::thread thread_;
};

ClientSide Attach(const std::string& name, ClientSide::Options options = {}) {
  absl::StatusOr<ClientSide> client = ClientSide::Attach(name, options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

ErrorCode Step(ClientSide& client, const std::vector<float>& actions) {
  const ErrorCode code = client.Send(actions);
  return code == ErrorCode::kOk ? client.Recv(Deadline::After(20)) : code;
}

// Until `done`, which a live engine brings about; gtest's own time-out is the
// watchdog.
void AwaitTrue(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

const std::vector<float> kActions = {1, 2, 3, 4, 5, 6};

TEST(Session, EachExchangeMovesActionsOnceAndCountsByOne) {
  const std::string name = UniqueRegionName("exchange");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  for (int i = 1; i <= 1000; ++i) {
    const float x = static_cast<float>(i);
    ASSERT_EQ(Step(client, {x, 0, 0, 0, 0, -x}), ErrorCode::kOk);
    ASSERT_EQ(client.arrays().obs[0], x);
    ASSERT_EQ(client.arrays().obs[5], -x);
    // relaxed: the exchange is over.
    ASSERT_EQ(
        client.mapping()->header()->frame_seq.load(std::memory_order_relaxed),
        static_cast<uint64_t>(i));
  }
  EXPECT_EQ(engine.steps(), 1000);
  const ClientStats stats = client.Stats();
  EXPECT_EQ(stats.exchanges, 1000u);
  EXPECT_EQ(stats.round_trips.count(), 1000u);
  EXPECT_GE(stats.round_trips.total_ns, stats.engine_steps.total_ns / 2);
}

TEST(Session, ResetOnlyStepsNobodyAndTheFlagsAreCleared) {
  const std::string name = UniqueRegionName("reset");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  const std::vector<int64_t> envs = {0, 2};
  ASSERT_EQ(client.SendReset(envs, 40), ErrorCode::kOk);
  EXPECT_EQ(client.arrays().reset_seeds[2], 42u);
  ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 0);
  EXPECT_EQ(engine.resets(), 2);
  for (const uint8_t flag : client.arrays().resets) EXPECT_EQ(flag, 0);
  const std::vector<int64_t> beyond = {3};
  EXPECT_EQ(client.SendReset(beyond, {}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 1);
}

TEST(Session, RefusesActionsThatAreNotFiniteOrOfAnotherSize) {
  const std::string name = UniqueRegionName("actions");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  EXPECT_EQ(client.Send(std::vector<float>(5)), ErrorCode::kInvalidAction);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(client.Send(std::vector<float>{0, 0, 0, bad, 0, 0}),
              ErrorCode::kInvalidAction);
    EXPECT_NE(
        client.Explain(ErrorCode::kInvalidAction).message().find("[1, 1]"),
        absl::string_view::npos);
  }
  client.arrays().actions[4] = std::nanf("");
  EXPECT_EQ(client.Send(client.arrays().actions), ErrorCode::kInvalidAction);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 1);
}

TEST(Session, SendAndRecvAlternate) {
  const std::string name = UniqueRegionName("alternate");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  EXPECT_EQ(client.Recv(Deadline::Now()), ErrorCode::kNoStepPending);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kStepPending);
  EXPECT_EQ(client.SendReset({}, {}), ErrorCode::kStepPending);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(client.Close(), ErrorCode::kOk);
  EXPECT_EQ(client.Close(), ErrorCode::kOk);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kClosed);
  EXPECT_EQ(client.Recv(Deadline::Now()), ErrorCode::kClosed);
}

TEST(Session, AnEngineFailureReachesTheClientWithItsText) {
  const std::string name = UniqueRegionName("failure");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  engine.FailNext();
  EXPECT_EQ(Step(client, kActions), ErrorCode::kEngineFailed);
  const absl::Status status = client.Explain(ErrorCode::kEngineFailed);
  EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
  EXPECT_NE(status.message().find("joint 3 \\x01 exploded"),
            absl::string_view::npos)
      << status;
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST(Session, ARefusedClientGetsTheEnginesReasonAndTheNextIsLetIn) {
  const std::string name = UniqueRegionName("refusal");
  EchoEngine engine(name, Spec());
  engine.RefuseNext();
  const absl::StatusOr<ClientSide> refused = ClientSide::Attach(name, {});
  EXPECT_EQ(CodeOf(refused.status()), ErrorCode::kEngineFailed);
  ClientSide client = Attach(name);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST(Session, ASecondClientIsRefusedUntilTheFirstLeaves) {
  const std::string name = UniqueRegionName("second");
  EchoEngine engine(name, Spec());
  ClientSide first = Attach(name);
  const absl::StatusOr<ClientSide> second = ClientSide::Attach(name, {});
  EXPECT_EQ(CodeOf(second.status()), ErrorCode::kAlreadyAttached);
  EXPECT_NE(second.status().message().find(absl::StrCat(getpid())),
            absl::string_view::npos);
  EXPECT_EQ(first.Close(), ErrorCode::kOk);
  ClientSide third = Attach(name);
  EXPECT_EQ(Step(third, kActions), ErrorCode::kOk);
}

TEST(Session, TheEngineNoticesAClientThatLeaves) {
  const std::string name = UniqueRegionName("leave");
  EchoEngine engine(name, Spec());
  {
    ClientSide client = Attach(name);
    EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  AwaitTrue([&] { return engine.departures() == 1; });
  EXPECT_EQ(engine.arrivals(), 1);
}

TEST(Session, FlagsThatAClientLeftBehindDoNotReachTheNext) {
  const std::string name = UniqueRegionName("flags");
  EchoEngine engine(name, Spec());
  {
    ClientSide client = Attach(name);
    client.arrays().resets[1] = kResetRequested;
  }
  ClientSide client = Attach(name);
  EXPECT_EQ(client.arrays().resets[1], 0);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.resets(), 0);
}

TEST(Session, CommandsThatAClientLeftBehindDoNotReachTheNext) {
  const std::string name = UniqueRegionName("rings");
  EchoEngine engine(name, Spec());
  const auto positions = [&](const ClientSide& client) {
    std::vector<SharedWord<uint32_t>*> words;
    for (const uint64_t offset :
         {client.plan().cmd_s2c_offset, client.plan().cmd_c2s_offset}) {
      auto* ring = client.mapping()->At<RingHeader>(offset);
      words.insert(words.end(), {&ring->write_pos, &ring->read_pos});
    }
    return words;
  };
  {
    ClientSide client = Attach(name);
    // relaxed: nobody else looks.
    for (SharedWord<uint32_t>* word : positions(client)) {
      word->store(24, std::memory_order_relaxed);
    }
  }
  ClientSide client = Attach(name);
  for (SharedWord<uint32_t>* word : positions(client)) {
    // relaxed: the welcome ordered it.
    EXPECT_EQ(word->load(std::memory_order_relaxed), 0u);
  }
}

TEST(Session, AnEngineThatStopsIsGoneForTheClientAtOnceAndForGood) {
  const std::string name = UniqueRegionName("stop");
  auto engine = std::make_unique<EchoEngine>(name, Spec());
  ClientSide client = Attach(name);
  engine.reset();
  EXPECT_EQ(access(RegionPath(name).c_str(), F_OK), -1);
  EXPECT_EQ(access(SpareLinkPath(name).c_str(), F_OK), -1);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kPeerGone);
  EXPECT_NE(client.Explain(ErrorCode::kPeerGone).message().find("stopped"),
            absl::string_view::npos);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kPeerGone);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kPeerGone);
}

TEST(Session, ReconnectsToARestartedEngineOfTheSameSchemaOnly) {
  const std::string name = UniqueRegionName("restart");
  auto engine = std::make_unique<EchoEngine>(name, Spec());
  ClientSide client = Attach(name);
  const std::span<float> old_obs = client.arrays().obs;
  const std::shared_ptr<const RegionMapping> old_mapping = client.mapping();
  engine.reset();
  EXPECT_EQ(CodeOf(client.Reconnect(0)), ErrorCode::kNotReady);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kClosed);

  engine = std::make_unique<EchoEngine>(name, Spec());
  ASSERT_TRUE(client.Reconnect(20).ok());
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(client.arrays().obs[5], 6);
  EXPECT_EQ(old_obs[5], 0);  // the old mapping lives while it is shared

  engine.reset();
  RegionSpec wider = Spec();
  wider.obs_size = 4;
  engine = std::make_unique<EchoEngine>(name, wider);
  EXPECT_EQ(CodeOf(client.Reconnect(20)), ErrorCode::kLayoutMismatch);
  engine.reset();
  RegionSpec other = Spec();
  other.task = "other";
  engine = std::make_unique<EchoEngine>(name, other);
  EXPECT_EQ(CodeOf(client.Reconnect(20)), ErrorCode::kLayoutMismatch);
  ClientSide next = Attach(name);  // the place was given free again
}

TEST(Session, ReconnectToALiveEngineAbandonsThePendingExchange) {
  const std::string name = UniqueRegionName("again");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  ASSERT_TRUE(client.Reconnect(20).ok());
  EXPECT_EQ(client.Recv(Deadline::Now()), ErrorCode::kNoStepPending);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 2);
}

TEST(Session, ARegionThatSomebodyUnlinkedGetsItsNameBack) {
  const std::string name = UniqueRegionName("unlinked");
  EchoEngine engine(name, Spec());
  ASSERT_EQ(unlink(RegionPath(name).c_str()), 0);
  ClientSide client = Attach(name);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST(Session, ANewClientIsServedWhateverTheLastOneCounted) {
  const std::string name = UniqueRegionName("counted");
  EchoEngine engine(name, Spec());
  {
    ClientSide client = Attach(name);
    // relaxed: a peer that scribbles.
    client.mapping()->header()->action_seq.store(77, std::memory_order_relaxed);
  }
  ClientSide client = Attach(name);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 1);
}

TEST(Session, AForeignClientThatCountsWronglyIsResynchronised) {
  const std::string name = UniqueRegionName("foreign");
  EchoEngine engine(name, Spec());
  LrbcHeader* header = engine.side().mapping()->header();
  // relaxed: a peer that scribbles.
  header->action_seq.store(500, std::memory_order_relaxed);
  AwaitTrue([&] { return engine.broken() == 1; });
  // relaxed: only the number is asked.
  EXPECT_EQ(header->frame_seq.load(std::memory_order_relaxed), 500u);
  // SYNC(lockstep.action): release; as a foreign client would.
  header->action_seq.store(501, std::memory_order_release);
  AwaitTrue([&] { return engine.steps() == 1; });
}

TEST(Session, AnEngineThatCountsWronglyIsABrokenPeer) {
  const std::string name = UniqueRegionName("broken");
  absl::StatusOr<EngineSide> side = EngineSide::Create(name, Spec(), {});
  ASSERT_TRUE(side.ok() && side->Open().ok());
  std::thread greeter([&] {
    EXPECT_EQ(side->Next(Deadline::After(20)), EngineEvent::kClientArrived);
    side->Welcome(absl::OkStatus());
  });
  ClientSide client = Attach(name);
  greeter.join();
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  // relaxed: a peer that scribbles.
  side->mapping()->header()->frame_seq.store(9, std::memory_order_relaxed);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kBrokenPeer);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kBrokenPeer);
}

TEST(Session, AnUnknownKindOrModeIsRefusedAndNothingIsStepped) {
  const std::string name = UniqueRegionName("unknown");
  EchoEngine engine(name, Spec());
  {
    ClientSide client = Attach(name);
    ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  LrbcHeader* header = engine.side().mapping()->header();
  // relaxed: action_seq publishes it.
  header->exchange_kind.store(9, std::memory_order_relaxed);
  // SYNC(lockstep.action): release; as a foreign client would.
  header->action_seq.store(2, std::memory_order_release);
  // SYNC(lockstep.frame): acquire; as a foreign client would.
  AwaitTrue(
      [&] { return header->frame_seq.load(std::memory_order_acquire) == 2; });
  // relaxed: frame_seq published it.
  EXPECT_EQ(header->exchange_status.load(std::memory_order_relaxed),
            static_cast<uint32_t>(ErrorCode::kUnsupported));
  EXPECT_EQ(engine.steps(), 1);
  ClientSide::Options options;
  options.autoreset = static_cast<AutoresetMode>(7);
  EXPECT_EQ(CodeOf(ClientSide::Attach(name, options).status()),
            ErrorCode::kUnsupported);
}

TEST(Session, AnInferenceRegionIsRefusedUntilThereIsSuchAThing) {
  const std::string name = UniqueRegionName("inference");
  absl::StatusOr<OwnedRegion> region = OwnedRegion::Create(name, Spec(), {});
  ASSERT_TRUE(region.ok());
  LrbcHeader* header = region->mapping()->header();
  header->mode = RegionMode::kInference;
  header->layout_crc32 = LayoutCrc(*header);
  ASSERT_TRUE(region->Link().ok());
  EXPECT_EQ(CodeOf(ClientSide::Attach(name, {}).status()),
            ErrorCode::kUnsupported);
}

TEST(Session, NoStatusInTheRegionPassesForAVerdictOfOurOwn) {
  const std::string name = UniqueRegionName("status");
  EchoEngine engine(name, Spec());
  LrbcHeader* header = engine.side().mapping()->header();
  for (uint32_t status = 0; status < 40; ++status) {
    ClientSide client = Attach(name);
    ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
    // SYNC(lockstep.frame): acquire; as the client will.
    AwaitTrue([&] {
      return header->frame_seq.load(std::memory_order_acquire) ==
             // relaxed: our own number.
             header->action_seq.load(std::memory_order_relaxed);
    });
    // relaxed: a peer that scribbles.
    header->exchange_status.store(status, std::memory_order_relaxed);
    const ErrorCode code = client.Recv(Deadline::After(20));
    if (status == 0) {
      EXPECT_EQ(code, ErrorCode::kOk);
    } else {
      EXPECT_TRUE(code == ErrorCode::kEngineFailed ||
                  code == ErrorCode::kUnsupported ||
                  code == ErrorCode::kBrokenPeer)
          << status;
    }
    EXPECT_FALSE(client.pending());
    // The next answer is sound again, and the next client is let in.
    if (code != ErrorCode::kBrokenPeer) {
      EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
    }
  }
}

TEST(Session, AStuckEngineTimesOutWithItsPhaseAndTheExchangeStaysPending) {
  const std::string name = UniqueRegionName("stuck");
  absl::StatusOr<EngineSide> side = EngineSide::Create(name, Spec(), {});
  ASSERT_TRUE(side.ok() && side->Open().ok());
  EXPECT_EQ(CodeOf(ClientSide::Attach(name, {.timeout_secs = 0.05}).status()),
            ErrorCode::kStepTimeout);
  // The one that gave up is welcomed first, and nobody comes.
  EXPECT_EQ(side->Next(Deadline::After(20)), EngineEvent::kClientArrived);
  side->Welcome(absl::OkStatus());
  EXPECT_EQ(side->Next(Deadline::After(20)), EngineEvent::kClientLeft);
  std::thread greeter([&] {
    EXPECT_EQ(side->Next(Deadline::After(20)), EngineEvent::kClientArrived);
    side->Welcome(absl::OkStatus());
  });
  ClientSide client = Attach(name);
  greeter.join();
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  ASSERT_EQ(side->Next(Deadline::After(20)), EngineEvent::kExchange);
  EXPECT_EQ(client.Recv(Deadline::After(0.05)), ErrorCode::kStepTimeout);
  EXPECT_NE(client.Explain(ErrorCode::kStepTimeout).message().find("stepping"),
            absl::string_view::npos);
  EXPECT_TRUE(client.pending());
  side->Publish();
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
}

TEST(Session, AForkedChildIsRefusedAndLeavesTheParentsSessionAlone) {
  const std::string name = UniqueRegionName("fork");
  EchoEngine engine(name, Spec());
  ClientSide client = Attach(name);
  const pid_t child = fork();
  if (child == 0) {
    bool refused = client.Send(kActions) == ErrorCode::kForkedChild &&
                   client.Recv(Deadline::Now()) == ErrorCode::kForkedChild &&
                   client.Close() == ErrorCode::kForkedChild;
    { const ClientSide dying = std::move(client); }
    { const EngineSide dying = std::move(engine.side()); }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(access(RegionPath(name).c_str(), F_OK), 0);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST(Session, PollServesAnEngineThatOwnsItsLoop) {
  const std::string name = UniqueRegionName("poll");
  absl::StatusOr<EngineSide> side = EngineSide::Create(name, Spec(), {});
  ASSERT_TRUE(side.ok() && side->Open().ok());
  EXPECT_EQ(side->Poll(), EngineEvent::kTimedOut);
  std::thread trainer([&] {
    ClientSide client = Attach(name);
    EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  });
  int exchanges = 0;
  for (bool left = false; !left;) {
    switch (side->Poll()) {
      case EngineEvent::kExchange:
        ++exchanges;
        side->Publish();
        break;
      case EngineEvent::kClientArrived:
        side->Welcome(absl::OkStatus());
        break;
      case EngineEvent::kClientLeft:
        left = true;
        break;
      default:
        std::this_thread::yield();
    }
  }
  trainer.join();
  EXPECT_EQ(exchanges, 1);
}

}  // namespace
}  // namespace tandem
