#include "viz/core/background.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr int64_t kPeriodNs = SlowRead<int>::kPeriodNs;

class SlowReadTest : public testing::Test {
 protected:
  // The number of reads so far is the result.
  std::shared_ptr<const int> Newest(int64_t now_ns, int64_t not_before_ns) {
    return read_->Newest(&thread_, now_ns, not_before_ns,
                         [this] { return ++reads_; });
  }
  int Await(int64_t now_ns, int64_t not_before_ns) {
    for (;;) {
      if (const auto result = Newest(now_ns, not_before_ns)) return *result;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  int reads_ = 0;  // of the thread
  std::shared_ptr<SlowRead<int>> read_ = std::make_shared<SlowRead<int>>();
  WorkThread thread_;
};

TEST_F(SlowReadTest, ReadsOnceInAPeriod) {
  EXPECT_EQ(Await(5, 0), 1);
  EXPECT_EQ(Await(4 + kPeriodNs, 0), 1);
  EXPECT_EQ(*Newest(5 + kPeriodNs, 0), 1);  // requests the next
  EXPECT_EQ(Await(5 + kPeriodNs, 5 + kPeriodNs), 2);
}

TEST_F(SlowReadTest, NeverReturnsAResultFromBefore) {
  EXPECT_EQ(Await(5, 0), 1);
  EXPECT_EQ(Newest(6, 6),
            nullptr);  // read again, though a second has not passed
  EXPECT_EQ(Await(7, 6), 2);
  EXPECT_EQ(read_->wanted_ns(), 7);
}

TEST(StartAction, HasTheResultAfterDone) {
  WorkThread thread;
  std::optional<absl::Status> status;
  const std::shared_ptr<Pending> pending = StartAction(
      &thread, [] { return absl::StatusOr<std::string>("text"); },
      [&](const absl::Status& done) { status = done; });
  while (!pending->Get().has_value()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(**pending->Get(), "text");
  EXPECT_TRUE(status.has_value() && status->ok());
}

TEST(StartAction, RefusesMoreThanMayWait) {
  absl::Notification is_at_work;
  absl::Notification go_on;
  WorkThread thread;
  StartAction(&thread,
              [&] {
                is_at_work.Notify();
                go_on.WaitForNotification();
                return absl::StatusOr<std::string>("done");
              },
              {});
  is_at_work.WaitForNotification();
  const auto start = [&] {
    return StartAction(&thread,
                       [] { return absl::StatusOr<std::string>("done"); }, {});
  };
  for (size_t i = 0; i < WorkThread::kMostWaiting; ++i) {
    EXPECT_FALSE(start()->Get().has_value());
  }
  const auto refused = start()->Get();
  go_on.Notify();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(CodeOf(refused->status()), ErrorCode::kNotReady);
}

}  // namespace
}  // namespace tandem
