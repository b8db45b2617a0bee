// Attendants beside a trainer, between real processes. Tests kill or freeze an
// attendant while it attaches, calls and leaves; and the engine while it admits
// an attendant, answers its call, and sees that it has left: before each access
// to shared memory, which with the attendant's system calls are all points that
// differ (every_access.h).

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/ring_header.h"
#include "tests/faults/every_access.h"
#include "tests/faults/host_fault_test.h"
#include "tests/faults/victim.h"
#include "transport/attendant_side.h"
#include "transport/client_side.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

// The attendant's slot, as the trainer sees it.
const AttendantSlot& SlotAt(const Caller& trainer, size_t slot) {
  return *trainer.side.mapping()->At<AttendantSlot>(
      AttendantSlotOffset(trainer.side.plan(), slot));
}

// An attendant's process attaches and calls, each within `timeout_secs`, and
// exits with the first error's code.
void AttachAndCall(const std::string& name, double timeout_secs) {
  Victim::Mark();
  const absl::StatusOr<std::unique_ptr<AttendantSide>> side =
      AttendantSide::Attach(name, {.timeout_secs = timeout_secs});
  if (!side.ok()) _exit(static_cast<int>(CodeOf(side.status())));
  const auto rpc = RpcClient::Create(side->get(), {}).value();
  const absl::Status status =
      rpc->Call(SchemaCall(), Deadline::After(timeout_secs)).status();
  _exit(static_cast<int>(CodeOf(status)));
}

// The code with which a released process has exited; kOk if it was killed.
ErrorCode AwaitCode(Victim& process) {
  return static_cast<ErrorCode>(WEXITSTATUS(process.AwaitExit()));
}

class AttendantFaults : public HostFaultTest {
 protected:
  static constexpr int kDraws = kEachAccess.draws;

  // The trainer steps, and a new attendant calls. Returns the attendant's slot.
  size_t ExpectAllAreServed(Caller& trainer) {
    EXPECT_EQ(trainer.Step(), ErrorCode::kOk);
    Panel panel(name_);
    EXPECT_EQ(panel.Call(), ErrorCode::kOk);
    for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
      // relaxed: this process wrote its pid.
      const uint32_t pid =
          SlotAt(trainer, slot).pid.load(std::memory_order_relaxed);
      if (pid == static_cast<uint32_t>(getpid())) return slot;
    }
    return kAttendantSlots;
  }
  // Kills such an attendant. The next one gets its slot.
  void KillTheAttendant(const std::function<void()>& attendant) {
    const std::unique_ptr<Victim> host = StartHost();
    Caller trainer(name_);
    KillEverywhere([] {}, attendant,
                   [&] { EXPECT_EQ(ExpectAllAreServed(trainer), 0u); });
  }
  // Freezes such an attendant. Others are served meanwhile.
  void FreezeTheAttendant(const std::function<void()>& attendant) {
    const std::unique_ptr<Victim> host = StartHost();
    Caller trainer(name_);
    FreezeEverywhere([] {}, attendant,
                     [&] { EXPECT_LE(ExpectAllAreServed(trainer), 1u); }, {0},
                     [&] { EXPECT_EQ(ExpectAllAreServed(trainer), 0u); });
  }

  // Bodies of the attendants above.
  std::function<void()> Attaches() {
    return [this] {
      Victim::Mark();
      const auto side = AttendantSide::Attach(name_, {});
      if (!side.ok()) _exit(static_cast<int>(CodeOf(side.status())));
      Victim::Mark();
    };
  }
  std::function<void()> Calls() {
    return [this] {
      Panel panel(name_);
      Victim::Mark();
      if (panel.Call() != ErrorCode::kOk) _exit(99);
      Victim::Mark();
    };
  }
  std::function<void()> Pauses() {
    return [this] {
      Panel panel(name_);
      Victim::Mark();
      if (panel.Pause() != ErrorCode::kOk) _exit(99);
      Victim::Mark();
    };
  }
  std::function<void()> Leaves() {
    return [this] {
      Panel panel(name_);
      if (panel.Call() != ErrorCode::kOk) _exit(98);
      Victim::Mark();
      panel.side->Close();
      Victim::Mark();
    };
  }

  // A held host, and something that an attendant has done and the host has not
  // seen.
  struct Unseen {
    std::unique_ptr<Victim> host;
    std::unique_ptr<Caller> trainer;
    std::unique_ptr<Victim> process = nullptr;  // the attendant's
    std::unique_ptr<Panel> panel = nullptr;     // or it is in this process
    uint64_t call = 0;                          // of the panel
    std::function<bool()> seen = {};
  };
  // An attendant that attaches and calls does both within `timeout_secs`.
  using Start = std::function<Unseen(double timeout_secs)>;

  Unseen StartHostAndTrainer() {
    std::unique_ptr<Victim> host = StartHostToHold();
    auto trainer = std::make_unique<Caller>(name_);
    EXPECT_EQ(trainer->Step(), ErrorCode::kOk);
    return {.host = std::move(host), .trainer = std::move(trainer)};
  }
  // An attendant has requested to be admitted.
  Unseen StartRequest(double timeout_secs) {
    Unseen start = StartHostAndTrainer();
    Hold(*start.host);
    const auto mapping = start.trainer->side.mapping();
    const auto bell = [mapping] {
      // relaxed: only compared.
      return mapping->header()->attendant_bell.load(std::memory_order_relaxed);
    };
    const uint32_t before = bell();
    start.process = std::make_unique<Victim>(
        [this, timeout_secs] { AttachAndCall(name_, timeout_secs); });
    EXPECT_TRUE(start.process->RunToMark());
    start.process->Release();
    while (bell() == before) usleep(100);  // the alarm is the watchdog
    start.seen = [&slot = SlotAt(*start.trainer, 0)] {
      // relaxed: only compared.
      return slot.ack.load(std::memory_order_relaxed) ==
             slot.request.load(std::memory_order_relaxed);
    };
    return start;
  }
  // An attendant has called.
  Unseen StartCall() {
    Unseen start = StartHostAndTrainer();
    start.panel = std::make_unique<Panel>(name_);
    EXPECT_EQ(start.panel->Call(), ErrorCode::kOk);
    Hold(*start.host);
    start.call = start.panel->rpc->Open(SchemaCall()).value();
    const ClientSide& side = start.trainer->side;
    const LrbcHeader& plan = side.plan();
    const auto* const answers = side.mapping()->At<RingHeader>(
        AttendantSlotOffset(plan, 0) +
        AttendantRingOffset(kToAttendant, plan.attendant_ring_size));
    const auto written = [answers] {
      // relaxed: only compared.
      return answers->write_pos.load(std::memory_order_relaxed);
    };
    start.seen = [written, before = written()] { return written() != before; };
    return start;
  }
  // An attendant that had paused the engine has left or died.
  Unseen StartLeave(bool dies) {
    Unseen start = StartHostAndTrainer();
    start.process = std::make_unique<Victim>([this] {
      Panel panel(name_);
      if (panel.Pause() != ErrorCode::kOk) _exit(99);
      Victim::Mark();
      panel.side->Close();
      Victim::Mark();
    });
    EXPECT_TRUE(start.process->RunToMark());
    Hold(*start.host);
    if (dies) {
      start.process->Kill();
      // Then the engine's next check of the locks is due, and its instructions
      // until it sees the death are few.
      usleep(120'000);
    } else {
      EXPECT_TRUE(start.process->RunToMark());
      start.process->Release();
    }
    start.seen = [mapping = start.trainer->side.mapping()] {
      // relaxed: only the phase is used.
      const uint64_t word =
          mapping->header()->engine_phase.load(std::memory_order_relaxed);
      return UnpackPhase(word).phase != Phase::kPausedByAttendant;
    };
    return start;
  }
  // What the attendant got.
  static ErrorCode Outcome(const Unseen& start, double timeout_secs) {
    if (start.panel == nullptr) return AwaitCode(*start.process);
    return CodeOf(
        start.panel->rpc->Next(start.call, Deadline::After(timeout_secs))
            .status());
  }
  static int InstructionsUntilSeen(const Start& start) {
    const Unseen unseen = start(20);
    return InstructionsUntil(*unseen.host, unseen.seen);
  }

  void KillTheEngine(const Start& start, int draws = kDraws) {
    int lost = 0;
    const auto kill = [&](const Advance& advance) {
      const Unseen unseen = start(20);
      advance(*unseen.host, unseen.seen);
      unseen.host->Kill();
      const std::unique_ptr<Victim> next = StartHost();
      // An attendant that was not admitted is admitted by the next engine.
      const ErrorCode code = Outcome(unseen, 20);
      if (code != ErrorCode::kOk) {
        ++lost;
        EXPECT_EQ(code, ErrorCode::kPeerGone) << NameOf(code);
      }
      EXPECT_EQ(unseen.trainer->Step(), ErrorCode::kPeerGone);
      const absl::Status status = unseen.trainer->Reconnect();
      ASSERT_TRUE(status.ok()) << status;
      ExpectAllAreServed(*unseen.trainer);
    };
    const int length = InstructionsUntilSeen(start);
    const int places = AtPlaces(
        draws, length, [&](int place) { kill(ByInstructions(place)); });
    const size_t stores = AtEachAccess(EveryAccess::kStores, kill);
    std::printf(
        "killed the engine at %d of %d instructions and each of %zu places; "
        "%d PeerGone\n",
        places, length, stores, lost);
  }

  void FreezeTheEngine(const Start& start, int draws = kDraws / 2) {
    int late = 0;
    const auto freeze = [&](const Advance& advance, double timeout_secs) {
      const Unseen unseen = start(0.05);
      advance(*unseen.host, unseen.seen);
      EXPECT_EQ(unseen.trainer->Step(timeout_secs == 0
                                         ? Deadline::Now()
                                         : Deadline::After(timeout_secs)),
                ErrorCode::kStepTimeout);
      const ErrorCode code = Outcome(unseen, 0.01);
      if (code != ErrorCode::kOk) {
        ++late;
        EXPECT_EQ(code, ErrorCode::kStepTimeout) << NameOf(code);
      }
      unseen.host->Release();
      EXPECT_EQ(unseen.trainer->Recv(), ErrorCode::kOk);
      if (unseen.panel != nullptr && code != ErrorCode::kOk) {
        EXPECT_EQ(Outcome(unseen, 20), ErrorCode::kOk);
      }
      ExpectAllAreServed(*unseen.trainer);
    };
    const int length = InstructionsUntilSeen(start);
    const int places = AtPlaces(
        draws, length, [&](int place) { freeze(ByInstructions(place), 0.01); });
    // An attendant's pause would extend a deadline by up to a second.
    const size_t accesses =
        AtEachAccess(EveryAccess::kLoadsAndStores,
                     [&](const Advance& advance) { freeze(advance, 0); });
    std::printf(
        "froze the engine at %d of %d instructions and each of %zu places; "
        "%d were late\n",
        places, length, accesses, late);
  }
};

TEST_F(AttendantFaults, AnAttendantKilledWhileItAttachesLeavesItsSlot) {
  KillTheAttendant(Attaches());
}

TEST_F(AttendantFaults, AnAttendantKilledWhileItCallsLeavesItsSlot) {
  KillTheAttendant(Calls());
}

TEST_F(AttendantFaults, AnAttendantKilledWhileItPausesLeavesNoPause) {
  KillTheAttendant(Pauses());
}

TEST_F(AttendantFaults, AnAttendantKilledWhileItLeavesLeavesItsSlot) {
  KillTheAttendant(Leaves());
}

TEST_F(AttendantFaults, AnAttendantFrozenWhileItAttachesDelaysNoOther) {
  FreezeTheAttendant(Attaches());
}

TEST_F(AttendantFaults, AnAttendantFrozenWhileItCallsDelaysNoOther) {
  FreezeTheAttendant(Calls());
}

// The trainer waits for the end of the pause.
TEST_F(AttendantFaults, AnAttendantFrozenWhileItPausesDelaysNoOtherAttendant) {
  const std::unique_ptr<Victim> host = StartHost();
  Caller trainer(name_);
  const auto others = [&] {
    Panel panel(name_);
    EXPECT_EQ(panel.Call(), ErrorCode::kOk);
  };
  FreezeEverywhere([] {}, Pauses(), others, {0},
                   [&] { EXPECT_EQ(ExpectAllAreServed(trainer), 0u); });
}

TEST_F(AttendantFaults, AnAttendantFrozenWhileItLeavesDelaysNoOther) {
  FreezeTheAttendant(Leaves());
}

TEST_F(AttendantFaults, AnEngineKilledWhileItAdmitsHasAdmittedOrIsGone) {
  KillTheEngine([this](double secs) { return StartRequest(secs); });
}

TEST_F(AttendantFaults, AnEngineKilledWhileItAnswersHasAnsweredOrIsGone) {
  KillTheEngine([this](double) { return StartCall(); });
}

TEST_F(AttendantFaults, AnEngineKilledWhileAnAttendantLeavesIsGone) {
  KillTheEngine([this](double) { return StartLeave(/*dies=*/false); });
}

TEST_F(AttendantFaults, AnEngineKilledAfterAnAttendantsDeathIsGone) {
  KillTheEngine([this](double) { return StartLeave(/*dies=*/true); },
                kDraws / 2);
}

TEST_F(AttendantFaults, AnEngineFrozenWhileItAdmitsTimesOutAndThenAdmits) {
  FreezeTheEngine([this](double secs) { return StartRequest(secs); });
}

TEST_F(AttendantFaults, AnEngineFrozenWhileItAnswersTimesOutAndThenAnswers) {
  FreezeTheEngine([this](double) { return StartCall(); });
}

TEST_F(AttendantFaults, AnEngineFrozenWhileAnAttendantLeavesEndsItsPause) {
  FreezeTheEngine([this](double) { return StartLeave(/*dies=*/false); });
}

TEST_F(AttendantFaults, AnEngineFrozenAfterAnAttendantsDeathEndsItsPause) {
  FreezeTheEngine([this](double) { return StartLeave(/*dies=*/true); },
                  kDraws / 4);
}

}  // namespace
}  // namespace tandem
