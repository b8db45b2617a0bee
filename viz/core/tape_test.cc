#include "viz/core/tape.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace tandem {
namespace {

struct Entry {
  int64_t at_ns = 0;
  size_t size = 10;
  size_t bytes() const { return size; }
};

TEST(Tape, ThinsOlderEntriesAndKeepsItsSpan) {
  Tape<Entry> tape({.span_ns = 600, .bytes = 1000, .thins = true});
  for (int64_t at = 0; at <= 5000; ++at) {
    tape.Keep({.at_ns = at});
    ASSERT_LE(tape.bytes(), 1000U);
  }
  EXPECT_EQ(tape.bytes(), tape.size() * 10);
  EXPECT_GE(tape.end_ns() - tape.begin_ns(), 550);
  // The newest are complete, and the gaps grow towards the oldest.
  for (int64_t at = 4990; at <= 5000; ++at) EXPECT_EQ(tape.At(at)->at_ns, at);
  const auto& entries = tape.entries();
  EXPECT_GE(entries[1]->at_ns - entries[0]->at_ns, 4);
}

TEST(Tape, EntriesThatFillItOneByOneLeaveTheNewest) {
  Tape<Entry> tape({.span_ns = 600, .bytes = 1000, .thins = true});
  for (int64_t at = 0; at < 9; ++at) tape.Keep({.at_ns = at, .size = 900});
  EXPECT_EQ(tape.size(), 1U);
  EXPECT_EQ(tape.end_ns(), 8);
  tape.Keep({.at_ns = 9, .size = 9000});
  EXPECT_EQ(tape.size(), 1U);
  tape.Clear();
  EXPECT_EQ(tape.bytes(), 0U);
  EXPECT_EQ(tape.At(9), nullptr);
}

}  // namespace
}  // namespace tandem
