// FaultTest: the common fixture of the tests that kill or freeze peers.
//
// Data flow: a region's name, engines that serve it, and clients. Clients must
// be served after any peer's death; at the end no file of the name is left.
//
//   class LockStepFaults : public FaultTest {};
//   const std::unique_ptr<Victim> engine = StartEngine();
//   KillEverywhere([] {},
//                  [this] {
//                    Victim::Mark();
//                    const auto client = ClientSide::Attach(name_, {});
//                    Victim::Mark();
//                  },
//                  [this] { ExpectANewClientIsServed(); });

#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/every_access.h"
#include "tests/faults/victim.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {

// A flag that the test and the victims that it makes later have in common.
class SharedFlag {
 public:
  SharedFlag() {
    void* const page = mmap(nullptr, sizeof(*flag_), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    flag_ = new (page) std::atomic<bool>(false);
  }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  ~SharedFlag() { munmap(flag_, sizeof(*flag_)); }

  // relaxed: the flag carries no other data.
  void Set(bool value) { flag_->store(value, std::memory_order_relaxed); }
  bool Get() const { return flag_->load(std::memory_order_relaxed); }

 private:
  std::atomic<bool>* flag_;
};

// Where a victim stops: at each of its system calls, and at these.
struct FaultPoints {
  // Before each store to shared memory, or before each access. With the system
  // calls these are all points that differ (every_access.h).
  std::optional<EveryAccess::Kind> accesses = std::nullopt;
  // Or before every `nth` of them.
  size_t nth = 1;
  // Instructions, spread evenly. They check that the others are enough.
  int draws = EveryAccess::kSupported ? 4 : 25;
};
inline constexpr FaultPoints kEachStore = {.accesses = EveryAccess::kStores};
inline constexpr FaultPoints kEachAccess = {.accesses =
                                                EveryAccess::kLoadsAndStores};

class FaultTest : public testing::Test {
 protected:
  // A hang is a failure.
  void SetUp() override { alarm(900 * static_cast<unsigned>(DrawsTimes())); }
  void TearDown() override {
    // Starting another engine removes the killed engines' regions.
    { const CountingServer next(UniqueRegionName("faults")); }
    ExpectNothingLeft(name_);
    alarm(0);
  }

  // Serves until the test kills it.
  std::unique_ptr<Victim> StartEngine() {
    auto engine = std::make_unique<Victim>([this] {
      CountingServer side(name_);
      Victim::Mark();
      side.Serve();
    });
    EXPECT_TRUE(engine->RunToMark());
    engine->Release();
    return engine;
  }

  void ExpectANewClientIsServed() {
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    ExpectFreshSession(*client);
  }

  // Runs `body` between its marks, and kills it at these points. Calls `before`
  // before each run, and `check` after each kill.
  void KillEverywhere(const std::function<void()>& before,
                      const std::function<void()>& body,
                      const std::function<void()>& check,
                      const FaultPoints& points = kEachStore) {
    AtEachPoint(before, body, points, [&](Victim& victim, bool) {
      victim.Kill();
      check();
    });
  }

  // Runs `body` between its marks, and freezes it at these points. Calls
  // `others` meanwhile. The released body must exit with one of `exits`; then
  // calls `check`.
  void FreezeEverywhere(const std::function<void()>& before,
                        const std::function<void()>& body,
                        const std::function<void()>& others,
                        const std::set<int>& exits,
                        const std::function<void()>& check,
                        const FaultPoints& points = kEachAccess) {
    AtEachPoint(before, body, points, [&](Victim& victim, bool within) {
      others();
      if (within) victim.RunToMark();
      victim.Release();
      const int status = victim.AwaitExit();
      EXPECT_TRUE(WIFEXITED(status) && exits.count(WEXITSTATUS(status)) > 0)
          << status;
      check();
    });
  }

  // More than 1 for long runs (docs/protocol.md): multiplies numbers of draws.
  static int DrawsTimes() {
    const char* const times = std::getenv("TANDEM_FAULT_DRAWS_TIMES");
    return times == nullptr ? 1 : std::max(1, std::atoi(times));
  }
  // Runs a stopped victim until shortly after `done`. Returns the number of
  // instructions.
  static int InstructionsUntil(Victim& victim,
                               const std::function<bool()>& done) {
    constexpr int kShortlyAfter = 300;
    int count = 0;
    while (!done() && victim.Advance(Victim::kInstruction)) ++count;
    return count + kShortlyAfter;
  }
  // Calls `there` at `draws` places, spread evenly over `length` instructions,
  // until a failure. Returns the number of places.
  static int AtPlaces(int draws, int length,
                      const std::function<void(int place)>& there) {
    draws = std::min(draws * DrawsTimes(), length);
    for (int draw = 0; draw < draws && !HasFailure(); ++draw) {
      const int place = static_cast<int>(int64_t{length} * draw / draws);
      SCOPED_TRACE(place);
      there(place);
    }
    return draws;
  }

  // Advances a victim to the point at which the test kills or freezes it.
  // `done` is for a victim without a further mark (EveryAccess). False: the
  // victim is past all points.
  using Advance =
      std::function<bool(Victim& victim, const std::function<bool()>& done)>;
  static Advance ByInstructions(int count) {
    return [count](Victim& victim, const std::function<bool()>&) {
      return victim.Advance(Victim::kInstruction, count);
    };
  }
  // Calls `there` for each access, or every `nth`, until a failure. `there`
  // calls `advance` once. Returns the number of accesses.
  static size_t AtEachAccess(
      EveryAccess::Kind kind,
      const std::function<void(const Advance& advance)>& there,
      size_t nth = 1) {
    if (!EveryAccess::kSupported) return 0;
    EveryAccess accesses(kind, nth);
    bool within = true;
    const auto advance = [&](Victim& victim,
                             const std::function<bool()>& done) {
      return within = accesses.AdvanceToNew(victim, done);
    };
    while (within && !HasFailure()) {
      SCOPED_TRACE(testing::Message() << accesses.places() << " accesses");
      there(advance);
    }
    return accesses.places();
  }

  const std::string name_ = UniqueRegionName("faults");

 private:
  // Calls `there` at each point; it gets whether the body is before its second
  // mark.
  void AtEachPoint(const std::function<void()>& before,
                   const std::function<void()>& body, const FaultPoints& points,
                   const std::function<void(Victim&, bool within)>& there) {
    int between_marks = 0;  // the number of such points
    const auto run = [&](const std::function<bool(Victim&)>& advance) {
      before();
      Victim victim(body);
      EXPECT_TRUE(victim.RunToMark());
      const bool within = advance(victim);
      if (within) ++between_marks;
      there(victim, within);
      return within;
    };
    const auto run_for = [&](Victim::Stride stride, int count) {
      SCOPED_TRACE(testing::Message()
                   << count
                   << (stride == Victim::kInstruction ? " instructions"
                                                      : " system call stops"));
      return run([&](Victim& victim) { return victim.Advance(stride, count); });
    };
    int calls = 0;
    while (run_for(Victim::kSystemCall, calls) && !HasFailure()) ++calls;
    const int length = points.draws == 0 ? 0 : CountInstructions(before, body);
    const int places = AtPlaces(points.draws, length, [&](int place) {
      run_for(Victim::kInstruction, place);
    });
    size_t accesses = 0;
    if (points.accesses) {
      accesses = AtEachAccess(
          *points.accesses,
          [&](const Advance& advance) {
            run([&](Victim& victim) { return advance(victim, nullptr); });
          },
          points.nth);
    }
    std::printf(
        "%d system call stops, %d of %d instructions, %zu of %zu places\n",
        calls, places, length, accesses / points.nth, accesses);
    EXPECT_GT(between_marks, 4);
  }

  static int CountInstructions(const std::function<void()>& before,
                               const std::function<void()>& body) {
    before();
    Victim victim(body);
    EXPECT_TRUE(victim.RunToMark());
    int count = 0;
    while (victim.Advance(Victim::kInstruction)) ++count;
    return count;
  }
};

}  // namespace tandem
