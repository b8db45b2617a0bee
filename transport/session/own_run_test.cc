#include "transport/session/own_run.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "schema/layout/lrbc.h"
#include "transport/run_snapshot.h"

namespace tandem {
namespace {

RunSnapshot RunOf(uint64_t number) {
  const auto value = static_cast<double>(number);
  return {.last_reward = value,
          .rolling_return = -value,
          .episodes = number,
          .episode_length = value / 2};
}

class OwnRun : public testing::Test {
 protected:
  OwnRun() : header_(std::make_unique<LrbcHeader>()) {}

  std::optional<RunSnapshot> Loaded() {
    std::optional<RunSnapshot> run = RunOf(999);
    EXPECT_TRUE(LoadOwnRun(*header_, &run));
    return run;
  }
  void SetSeq(uint64_t seq) {
    // relaxed: the test has one thread.
    header_->own_seq.store(seq, std::memory_order_relaxed);
  }

  std::unique_ptr<LrbcHeader> header_;
};

TEST_F(OwnRun, IsAbsentAtFirst) { EXPECT_EQ(Loaded(), std::nullopt); }

TEST_F(OwnRun, ReaderGetsWhatWasStoredLast) {
  for (const uint64_t number : {7U, 0U, 8U}) {
    StoreOwnRun(header_.get(), RunOf(number));
    EXPECT_EQ(Loaded(), RunOf(number));
  }
  StoreOwnRun(header_.get(), std::nullopt);
  EXPECT_EQ(Loaded(), std::nullopt);
}

TEST_F(OwnRun, ReaderKeepsItsValueDuringAWrite) {
  StoreOwnRun(header_.get(), RunOf(1));
  SetSeq(3);
  std::optional<RunSnapshot> run = RunOf(5);
  EXPECT_FALSE(LoadOwnRun(*header_, &run));
  EXPECT_EQ(run, RunOf(5));
}

TEST_F(OwnRun, StoreAfterAnUnfinishedOneIsReadable) {
  SetSeq(41);  // of a client that died
  StoreOwnRun(header_.get(), RunOf(2));
  EXPECT_EQ(Loaded(), RunOf(2));
  StoreOwnRun(header_.get(), RunOf(3));
  EXPECT_EQ(Loaded(), RunOf(3));
}

// Under ThreadSanitizer, too.
TEST_F(OwnRun, ConcurrentReaderSeesWholeStatistics) {
  constexpr uint64_t kWrites = 20'000;
  std::thread writer([this] {
    for (uint64_t number = 1; number <= kWrites; ++number) {
      StoreOwnRun(header_.get(), RunOf(number));
    }
  });
  uint64_t newest = 0;
  while (newest < kWrites) {
    std::optional<RunSnapshot> run;
    if (!LoadOwnRun(*header_, &run) || !run) continue;
    ASSERT_EQ(*run, RunOf(run->episodes));
    ASSERT_GE(run->episodes, newest);
    newest = run->episodes;
  }
  writer.join();
}

}  // namespace
}  // namespace tandem
