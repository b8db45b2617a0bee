#include "slow_lane/daemon/run_processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/status/statusor.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {
namespace {

TEST(RunProcesses, AProcessOfAnotherBootHasNoAge) {
  absl::StatusOr<ProcessIdentity> self = IdentityOf(getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  const double age = SecondsSinceStart(*self);
  EXPECT_GE(age, 0);
  --self->start_time;
  EXPECT_GT(SecondsSinceStart(*self), age);
  self->boot_id = "another";
  EXPECT_EQ(SecondsSinceStart(*self), 0);
}

}  // namespace
}  // namespace tandem::slow_lane
