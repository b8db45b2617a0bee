// The ring between two real processes. The peer reads, reads slowly, is
// stopped, or is killed. A watchdog ends a test that hangs.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/os/testing/child_process.h"
#include "schema/layout/error_codes.h"
#include "transport/ring/ring.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kCapacity = 1024;
constexpr uint32_t kMessages = 20'000;

// The other process is alive as long as it is not a zombie.
class ChildWatch : public WaitWatch {
 public:
  explicit ChildWatch(const ChildProcess& child) : child_(child) {}
  ErrorCode Check(int64_t, bool) override {
    return child_.HasEnded() ? ErrorCode::kPeerGone : ErrorCode::kOk;
  }

 private:
  const ChildProcess& child_;
};

class NoWatch : public WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

// Message `i`: repeats its number over its length, which depends on `i`.
std::vector<std::byte> Message(uint32_t i) {
  std::vector<std::byte> message(4 + i * 13 % 300);
  for (size_t at = 0; at < message.size(); at += 4) {
    std::memcpy(&message[at], &i, std::min<size_t>(4, message.size() - at));
  }
  return message;
}

// Reads messages `first` to `last` - 1. Returns 0 when each was correct.
int ReadMessages(TestRegion& region, uint32_t first, uint32_t last,
                 WaitStrategy strategy, int yields_per_message) {
  RingReader reader = region.Reader();
  Waiter waiter(region.reader_bell(), strategy);
  NoWatch watch;
  std::vector<std::byte> buffer(reader.max_message_bytes());
  for (uint32_t i = first; i < last; ++i) {
    size_t bytes = 0;
    if (reader.Read(buffer, &bytes, Deadline::Infinite(), waiter, watch) !=
        ErrorCode::kOk) {
      return 1;
    }
    const std::vector<std::byte> expected = Message(i);
    if (bytes != expected.size() ||
        std::memcmp(buffer.data(), expected.data(), bytes) != 0) {
      return 2;
    }
    for (int y = 0; y < yields_per_message; ++y) sched_yield();
  }
  return 0;
}

// Writes without waiting until the ring is full. Returns the next number.
uint32_t FillRing(RingWriter& writer, uint32_t i) {
  for (;; ++i) {
    const ErrorCode code = writer.TryWrite(Message(i));
    if (code == ErrorCode::kRingFull) return i;
    EXPECT_EQ(code, ErrorCode::kOk);
  }
}

class RingBetweenProcesses : public testing::Test {
 protected:
  void SetUp() override { alarm(120); }
  void TearDown() override { alarm(0); }

  // The positions wrap modulo 2^32 during the test.
  TestRegion region_{kCapacity, 0U - 64 * kCapacity};
  RingWriter writer_ = region_.Writer();
  Waiter waiter_{region_.writer_bell(), WaitStrategy::kAdaptive};
};

class RingToALiveReader : public RingBetweenProcesses,
                          public testing::WithParamInterface<WaitStrategy> {};

TEST_P(RingToALiveReader, DeliversEveryMessageOnceInOrder) {
  ChildProcess child(
      [&] { return ReadMessages(region_, 0, kMessages, GetParam(), 0); });
  ChildWatch watch(child);
  Waiter waiter(region_.writer_bell(), GetParam());
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(writer_.Write(Message(i), Deadline::Infinite(), waiter, watch),
              ErrorCode::kOk)
        << i;
  }
  EXPECT_EQ(child.ExitCode(), 0);
  EXPECT_EQ(region_.read_pos(), region_.write_pos());
}

INSTANTIATE_TEST_SUITE_P(AllStrategies, RingToALiveReader,
                         testing::Values(WaitStrategy::kSpin,
                                         WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

TEST_F(RingBetweenProcesses, ASlowReaderHoldsTheWriterBack) {
  constexpr uint32_t kFew = 1000;
  const uint32_t next = FillRing(writer_, 0);  // Full before the reader starts.
  ChildProcess child(
      [&] { return ReadMessages(region_, 0, kFew, WaitStrategy::kBlock, 50); });
  ChildWatch watch(child);
  for (uint32_t i = next; i < kFew; ++i) {
    ASSERT_EQ(writer_.Write(Message(i), Deadline::Infinite(), waiter_, watch),
              ErrorCode::kOk);
  }
  EXPECT_EQ(child.ExitCode(), 0);
}

TEST_F(RingBetweenProcesses, AStoppedReaderTimesTheWriterOut) {
  constexpr uint32_t kAll = 400;
  ChildProcess child([&] {
    return ReadMessages(region_, 0, kAll, WaitStrategy::kAdaptive, 0);
  });
  ChildWatch watch(child);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(writer_.Write(Message(i), Deadline::Infinite(), waiter_, watch),
              ErrorCode::kOk);
  }
  ASSERT_TRUE(child.Stop());
  uint32_t next = FillRing(writer_, 100);
  const uint32_t write_pos = region_.write_pos();
  const Deadline deadline = Deadline::After(0.02);
  EXPECT_EQ(writer_.Write(Message(next), deadline, waiter_, watch),
            ErrorCode::kStepTimeout);
  EXPECT_TRUE(deadline.PassedAt(MonotonicNanos()));
  EXPECT_EQ(region_.write_pos(), write_pos);  // No part of it was written.
  EXPECT_EQ(writer_.TryWrite(Message(next)), ErrorCode::kRingFull);
  child.Continue();
  for (; next < kAll; ++next) {
    ASSERT_EQ(
        writer_.Write(Message(next), Deadline::Infinite(), waiter_, watch),
        ErrorCode::kOk);
  }
  EXPECT_EQ(child.ExitCode(), 0);  // Every message once, in order.
}

TEST_F(RingBetweenProcesses, AKilledReaderIsGone) {
  ChildProcess child([&] {
    return ReadMessages(region_, 0, kMessages, WaitStrategy::kAdaptive, 0);
  });
  ChildWatch watch(child);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(writer_.Write(Message(i), Deadline::Infinite(), waiter_, watch),
              ErrorCode::kOk);
  }
  child.Signal(SIGKILL);
  child.AwaitDeath();
  const uint32_t next = FillRing(writer_, 100);
  EXPECT_EQ(writer_.Write(Message(next), Deadline::Infinite(), waiter_, watch),
            ErrorCode::kPeerGone);
  EXPECT_EQ(writer_.TryWrite(Message(next)), ErrorCode::kRingFull);

  // The next reader starts at the dead reader's position, or with a reset ring.
  ResetRing(&region_.header());
  RingWriter writer = region_.Writer();
  ChildProcess second([&] {
    return ReadMessages(region_, 0, 1000, WaitStrategy::kAdaptive, 0);
  });
  ChildWatch second_watch(second);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(
        writer.Write(Message(i), Deadline::Infinite(), waiter_, second_watch),
        ErrorCode::kOk);
  }
  EXPECT_EQ(second.ExitCode(), 0);
}

TEST_F(RingBetweenProcesses, AReaderKilledWhileTheWriterWaitsIsGone) {
  ChildProcess reader([&] {
    pause();
    return 0;
  });
  ChildWatch watch(reader);
  const uint32_t next = FillRing(writer_, 0);
  // Kills the reader once the writer sleeps on its bell.
  ChildProcess killer([&] {
    bool asleep = false;
    while (!asleep) asleep = region_.writer_sleepers() > 0;
    return kill(reader.pid(), SIGKILL);
  });
  EXPECT_EQ(writer_.Write(Message(next), Deadline::Infinite(), waiter_, watch),
            ErrorCode::kPeerGone);
  EXPECT_EQ(killer.ExitCode(), 0);
}

TEST_F(RingBetweenProcesses, MessagesOfDeadWriterAreReadBeforePeerGone) {
  ChildProcess child([&] {
    uint32_t next = 0;
    while (writer_.TryWrite(Message(next)) == ErrorCode::kOk) ++next;
    raise(SIGKILL);
    return 0;
  });
  child.AwaitDeath();
  ChildWatch watch(child);
  RingReader reader = region_.Reader();
  Waiter waiter(region_.reader_bell(), WaitStrategy::kBlock);
  std::vector<std::byte> buffer(reader.max_message_bytes());
  uint32_t count = 0;
  ErrorCode code = ErrorCode::kOk;
  for (;; ++count) {
    size_t bytes = 0;
    code = reader.Read(buffer, &bytes, Deadline::Infinite(), waiter, watch);
    if (code != ErrorCode::kOk) break;
    ASSERT_EQ(bytes, Message(count).size());
    ASSERT_EQ(std::memcmp(buffer.data(), Message(count).data(), bytes), 0);
  }
  EXPECT_EQ(code, ErrorCode::kPeerGone);
  EXPECT_EQ(region_.read_pos(), region_.write_pos());
}

}  // namespace
}  // namespace tandem
