// Both sides of a ring as threads of one process, so that ThreadSanitizer
// (--config=tsan) can check them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "transport/ring/ring.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kMessages = 100'000;

class NoWatch : public WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

class RingBetweenThreads : public testing::TestWithParam<WaitStrategy> {};

// The smallest ring: it is full or empty at nearly every call, and wraps
// often. Message i is i % 29 bytes of value i.
TEST_P(RingBetweenThreads, DeliversEveryMessageOnceInOrder) {
  alarm(300);
  TestRegion region(64, 0U - 4096);
  std::thread writing([&] {
    RingWriter writer = region.Writer();
    Waiter waiter(region.writer_bell(), GetParam());
    NoWatch watch;
    std::vector<std::byte> message(writer.max_message_bytes());
    for (uint32_t i = 0; i < kMessages; ++i) {
      std::memset(message.data(), static_cast<int>(i % 256), i % 29);
      ASSERT_EQ(writer.Write({message.data(), i % 29}, Deadline::Infinite(),
                             waiter, watch),
                ErrorCode::kOk);
    }
  });
  RingReader reader = region.Reader();
  Waiter waiter(region.reader_bell(), GetParam());
  NoWatch watch;
  std::vector<std::byte> buffer(reader.max_message_bytes());
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kMessages; ++i) {
    size_t bytes = 0;
    ASSERT_EQ(reader.Read(buffer, &bytes, Deadline::Infinite(), waiter, watch),
              ErrorCode::kOk);
    wrong += bytes != i % 29;
    for (size_t at = 0; at < bytes; ++at) {
      wrong += buffer[at] != static_cast<std::byte>(i % 256);
    }
  }
  writing.join();
  EXPECT_EQ(wrong, 0U);
  size_t bytes = 0;
  EXPECT_EQ(reader.TryRead(buffer, &bytes), ErrorCode::kRingEmpty);
  EXPECT_TRUE(region.CanariesLive());
  alarm(0);
}

INSTANTIATE_TEST_SUITE_P(SleepingStrategies, RingBetweenThreads,
                         testing::Values(WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

}  // namespace
}  // namespace tandem
