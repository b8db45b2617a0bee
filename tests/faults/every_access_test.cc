#include "tests/faults/every_access.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <set>
#include <utility>

#include "tests/faults/victim.h"

namespace tandem {
namespace {

using Words = std::atomic<uint32_t>*;

// Tests have a file in /dev/shm with four words, which are 0 before each
// victim.
class EveryAccessTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 4096;

  void SetUp() override {
    if (!EveryAccess::kSupported) GTEST_SKIP() << "not on this processor";
    alarm(60);  // a hang is a failure
    fd_ = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(ftruncate(fd_, kBytes), 0);
    words_ = Map();
  }
  void TearDown() override {
    if (words_ != nullptr) munmap(words_, kBytes);
    if (fd_ >= 0) close(fd_);
    alarm(0);
  }

  Words Map() const {
    void* const page =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (page == MAP_FAILED) std::abort();
    return static_cast<Words>(page);
  }
  // relaxed: the victim is stopped, or this process alone uses the words.
  void Set(size_t word, uint32_t value) {
    words_[word].store(value, std::memory_order_relaxed);
  }
  uint32_t Get(size_t word) const {
    // relaxed: as above.
    return words_[word].load(std::memory_order_relaxed);
  }

  // Runs `body` between two marks in a victim for each place, and calls `there`
  // with it, stopped.
  void AtEach(EveryAccess::Kind kind, const std::function<void()>& body,
              const std::function<void(Victim&)>& there) {
    EveryAccess accesses(kind);
    bool within = true;
    while (within) {
      for (size_t word = 0; word < 4; ++word) Set(word, 0);
      lseek(fd_, 0, SEEK_SET);
      Victim victim([&] {
        Victim::Mark();
        body();
        Victim::Mark();
      });
      EXPECT_TRUE(victim.RunToMark());
      within = accesses.AdvanceToNew(victim);
      there(victim);
    }
  }

  int fd_ = -1;
  Words words_ = nullptr;
};

TEST_F(EveryAccessTest, StopsBeforeEachStore) {
  std::set<uint32_t> found;
  AtEach(
      EveryAccess::kStores,
      [this] {
        for (uint32_t value = 1; value <= 3; ++value) Set(0, value + Get(1));
      },
      [&](Victim&) { found.insert(Get(0)); });
  EXPECT_EQ(found, (std::set<uint32_t>{0, 1, 2, 3}));
}

TEST_F(EveryAccessTest, StopsBetweenTwoLoads) {
  std::set<std::pair<uint32_t, uint32_t>> found;
  AtEach(
      EveryAccess::kLoadsAndStores,
      [this] {
        const uint32_t first = Get(0);
        const uint32_t second = Get(1);
        Set(2, first);
        Set(3, second);
      },
      [&](Victim& victim) {
        Set(0, 1);
        Set(1, 1);
        victim.RunToMark();
        found.insert({Get(2), Get(3)});
      });
  EXPECT_EQ(found,
            (std::set<std::pair<uint32_t, uint32_t>>{{0, 0}, {0, 1}, {1, 1}}));
}

TEST_F(EveryAccessTest, StopsBetweenTwoSystemCalls) {
  std::set<off_t> found;
  bool within = true;
  AtEach(
      EveryAccess::kStores,
      [this] {
        for (int i = 0; i < 3; ++i) lseek(fd_, 1, SEEK_CUR);
      },
      [&](Victim& victim) {
        found.insert(lseek(fd_, 0, SEEK_CUR));
        if (lseek(fd_, 0, SEEK_CUR) < 3) within = victim.RunToMark();
        EXPECT_EQ(lseek(fd_, 0, SEEK_CUR), 3);  // it has made the call, once
      });
  EXPECT_TRUE(within);
  EXPECT_EQ(found, (std::set<off_t>{0, 1, 2, 3}));
}

TEST_F(EveryAccessTest, ASpinIsOnePlace) {
  EveryAccess accesses(EveryAccess::kLoadsAndStores);
  int runs = 0;
  for (bool within = true; within; ++runs) {
    Victim victim([this] {
      Victim::Mark();
      while (Get(0) == 0) {
      }
    });
    EXPECT_TRUE(victim.RunToMark());
    within = accesses.AdvanceToNew(victim, [] { return true; });
  }
  EXPECT_LT(runs, 10);
}

TEST_F(EveryAccessTest, StopsInAMappingThatTheVictimMakes) {
  std::set<uint32_t> found;
  AtEach(
      EveryAccess::kStores,
      [this] {
        const Words words = Map();
        madvise(words, kBytes, MADV_POPULATE_WRITE);
        // relaxed: this process alone uses the words.
        words[0].store(1, std::memory_order_relaxed);
        // relaxed: as above.
        words[0].store(2, std::memory_order_relaxed);
        munmap(words, kBytes);
        Set(0, 3);
      },
      [&](Victim&) { found.insert(Get(0)); });
  EXPECT_EQ(found, (std::set<uint32_t>{0, 1, 2, 3}));
}

TEST_F(EveryAccessTest, AVictimSleepsOnAProtectedWord) {
  AtEach(
      EveryAccess::kLoadsAndStores,
      [this] {
        const timespec slice = {.tv_sec = 0, .tv_nsec = 1'000'000};
        const long result =
            syscall(SYS_futex, words_, FUTEX_WAIT, 0, &slice, nullptr, 0);
        Set(1, result == 0 ? 0 : static_cast<uint32_t>(errno));
      },
      [this](Victim& victim) {
        victim.RunToMark();
        EXPECT_EQ(Get(1), static_cast<uint32_t>(ETIMEDOUT));
      });
}

}  // namespace
}  // namespace tandem
