#include "slow_lane/runs/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <vector>

namespace tandem::slow_lane {
namespace {

TreeMember Member(pid_t pid) {
  TreeMember member;
  member.identity.pid = pid;
  return member;
}

TEST(SumOfPss, CountsTouchedMemory) {
  // Far more than the program's own memory, whose share varies with the other
  // processes that have the same libraries.
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<TreeMember> self = {Member(getpid())};
  EXPECT_GT(SumOfPss(self), 0u);
  EXPECT_LT(SumOfPss(self), kBytes);
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  EXPECT_GE(SumOfPss(self), kBytes);
  munmap(memory, kBytes);
  EXPECT_LT(SumOfPss(self), kBytes);
}

TEST(SumOfPss, AnEndedProcessHasNone) {
  const std::vector<TreeMember> none = {
      Member(std::numeric_limits<pid_t>::max())};
  EXPECT_EQ(SumOfPss(none), 0u);
}

}  // namespace
}  // namespace tandem::slow_lane
