#include "base/os/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace tandem {
namespace {

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static_assert(!std::is_copy_constructible_v<UniqueFd>);
static_assert(!std::is_copy_assignable_v<UniqueFd>);
static_assert(std::is_nothrow_move_constructible_v<UniqueFd>);

TEST(UniqueFd, OwnsNothingAtFirst) {
  UniqueFd fd;
  EXPECT_FALSE(fd.valid());
  EXPECT_EQ(fd.get(), -1);
  fd.reset();
}

TEST(UniqueFd, ClosesAtTheEnd) {
  const int number = OpenNull();
  {
    const UniqueFd fd(number);
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFd, ResetClosesOnce) {
  const int number = OpenNull();
  UniqueFd fd(number);
  fd.reset();
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(IsOpen(number));
  const UniqueFd reused(OpenNull());  // It gets the same number.
  fd.reset();
  EXPECT_TRUE(IsOpen(reused.get()));
}

TEST(UniqueFd, MovesAndClosesWhatItHeld) {
  UniqueFd first(OpenNull());
  UniqueFd second(OpenNull());
  const int kept = first.get();
  const int closed = second.get();
  second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): promised
  EXPECT_EQ(second.get(), kept);
  EXPECT_TRUE(IsOpen(kept));
  EXPECT_FALSE(IsOpen(closed));
  UniqueFd third(std::move(second));
  EXPECT_EQ(third.get(), kept);
}

TEST(UniqueFd, SurvivesBeingMovedToItself) {
  UniqueFd fd(OpenNull());
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(IsOpen(fd.get()));
}

}  // namespace
}  // namespace tandem
