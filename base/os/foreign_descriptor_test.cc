#include "base/os/foreign_descriptor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "base/error.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"

namespace tandem {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr int kNumber = 700;  // of a descriptor that the child alone has

SharedRegion MakeRegion() {
  return SharedRegion::Create(kBytes, /*group_access=*/false,
                              {"the test's region", "use less"})
      .value();
}

// A child process with a mapped region and an open file.
class ForeignDescriptorTest : public testing::Test {
 protected:
  ForeignDescriptorTest()
      : base_(region_.Map(kBytes, SharedRegion::Access::kRead).value()),
        file_(memfd_create("file", MFD_CLOEXEC)) {
    EXPECT_EQ(dup2(file_.get(), kNumber), kNumber);
    child_ = fork();
    while (child_ == 0) pause();
    close(kNumber);
  }
  ~ForeignDescriptorTest() override {
    End();
    SharedRegion::Unmap(base_, kBytes);
  }
  void End() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  absl::StatusOr<UniqueFd> Take(uint32_t number, const SharedRegion& mapped) {
    return TakeDescriptor(static_cast<uint32_t>(child_), number, mapped.id());
  }

  const SharedRegion region_ = MakeRegion();
  std::byte* const base_;
  const UniqueFd file_;
  pid_t child_;
};

TEST_F(ForeignDescriptorTest, IsTheSameOpenFile) {
  const auto taken = Take(kNumber, region_);
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(write(file_.get(), "file", 4), 4);
  EXPECT_EQ(lseek(taken->get(), 0, SEEK_CUR), 4);
}

TEST_F(ForeignDescriptorTest, RefusesAClosedNumber) {
  EXPECT_EQ(CodeOf(Take(kNumber + 1, region_).status()), ErrorCode::kNotReady);
}

TEST_F(ForeignDescriptorTest, RefusesAProcessWithoutTheMemory) {
  EXPECT_EQ(CodeOf(Take(kNumber, MakeRegion()).status()),
            ErrorCode::kUnsupported);
}

TEST_F(ForeignDescriptorTest, RefusesAProcessThatHasEnded) {
  End();
  EXPECT_EQ(CodeOf(Take(kNumber, region_).status()), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace tandem
