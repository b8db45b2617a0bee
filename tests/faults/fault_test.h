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

#ifndef TANDEM_TESTS_FAULTS_FAULT_TEST_H_
#define TANDEM_TESTS_FAULTS_FAULT_TEST_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/victim.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/client_side.h"

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

  // Runs `body` between its marks, and kills it: at each of its system calls,
  // and at `draws` instructions, spread evenly. Calls `before` before each run,
  // and `check` after each kill.
  void KillEverywhere(const std::function<void()>& before,
                      const std::function<void()>& body,
                      const std::function<void()>& check, int draws = 25) {
    AtEachPoint(before, body, draws, [&](Victim& victim, bool) {
      victim.Kill();
      check();
    });
  }

  // Runs `body` between its marks, and freezes it at such points. Calls
  // `others` meanwhile. The released body must exit with one of `exits`; then
  // calls `check`.
  void FreezeEverywhere(const std::function<void()>& before,
                        const std::function<void()>& body,
                        const std::function<void()>& others,
                        const std::set<int>& exits,
                        const std::function<void()>& check, int draws = 0) {
    AtEachPoint(before, body, draws, [&](Victim& victim, bool within) {
      others();
      if (within) victim.RunToMark();
      victim.Release();
      const int status = victim.AwaitExit();
      EXPECT_TRUE(WIFEXITED(status) && exits.count(WEXITSTATUS(status)) > 0)
          << status;
      check();
    });
  }

  // For long runs: multiplies the numbers of draws.
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

  const std::string name_ = UniqueRegionName("faults");

 private:
  // Calls `there` at each point; it gets whether the body is before its second
  // mark.
  void AtEachPoint(const std::function<void()>& before,
                   const std::function<void()>& body, int draws,
                   const std::function<void(Victim&, bool within)>& there) {
    int between_marks = 0;  // the number of such points
    const auto run = [&](Victim::Stride stride, int count) {
      SCOPED_TRACE(testing::Message()
                   << count
                   << (stride == Victim::kInstruction ? " instructions"
                                                      : " system call stops"));
      before();
      Victim victim(body);
      EXPECT_TRUE(victim.RunToMark());
      const bool within = victim.Advance(stride, count);
      if (within && count > 0) ++between_marks;
      there(victim, within);
      return within;
    };
    int calls = 0;
    while (run(Victim::kSystemCall, calls) && !HasFailure()) ++calls;
    const int length = draws == 0 ? 0 : CountInstructions(before, body);
    const int places = AtPlaces(
        draws, length, [&](int place) { run(Victim::kInstruction, place); });
    std::printf("%d system call stops and %d of %d instructions\n", calls,
                places, length);
    EXPECT_GT(between_marks, 3);
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

#endif  // TANDEM_TESTS_FAULTS_FAULT_TEST_H_
