#include "transport/region_copies.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"
#include "transport/gpu/testing/standin_library.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr size_t kRegionBytes = 64 << 10;
constexpr size_t kSourceBytes = 100;
// Two neighbours, not in their order, and a distant one.
constexpr size_t kOffsets[] = {512, 260, 40'000};

// The stand-in's copies to the device take 5 ms each.
class RegionCopiesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("TANDEM_CUDA_LIBRARY", StandInLibrary().c_str(), 1);
    setenv("TANDEM_STANDIN_COPY_MS", "5", 1);
  }
  void SetUp() override {
    const UniqueFd fd(memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(fd.get(), kRegionBytes), 0);
    mapping_ = RegionMapping::Map(SharedRegion::OfHandle(fd.get()).value(),
                                  kRegionBytes)
                   .value();
  }

  // Each source has bytes of its own.
  void Write(uint8_t value) {
    for (const size_t offset : kOffsets) {
      std::memset(mapping_->base() + offset, value++, kSourceBytes);
    }
  }
  absl::StatusOr<std::shared_ptr<RegionCopies>> Make(bool overlaps) {
    std::vector<RegionCopies::Source> sources;
    for (const size_t offset : kOffsets) {
      sources.push_back({mapping_->base() + offset, kSourceBytes});
    }
    return RegionCopies::Make(0, mapping_, sources, overlaps);
  }
  // Whether a copy has what Write(value) wrote.
  static bool Has(RegionCopies& copies, uint64_t copy, uint8_t value) {
    const auto context =
        PrimaryContext::Of(*CudaDriver::Load().value(), 0).value();
    const CurrentContext current(*context);
    if (!copies.WaitOn(copy, CudaStreamOfNumber(1)).ok()) return false;
    for (size_t source = 0; source < std::size(kOffsets); ++source) {
      std::vector<uint8_t> found(kSourceBytes);
      const CudaResult result =
          context->cuda().MemcpyToHost(found.data(), copies.At(copy, source),
                                       kSourceBytes, CudaStreamOfNumber(1));
      if (result != kCudaSuccess) return false;
      if (found != std::vector<uint8_t>(kSourceBytes, value++)) return false;
    }
    return true;
  }

  std::shared_ptr<const RegionMapping> mapping_;
};

TEST_F(RegionCopiesTest, ACopyHasTheSourcesOfItsBegin) {
  const auto copies = Make(/*overlaps=*/false).value();
  for (uint8_t step = 1; step < 5; ++step) {
    Write(step);
    const uint64_t copy = copies->Begin().value();
    EXPECT_EQ(copy, step);
    EXPECT_TRUE(copies->AwaitRead().ok());
    Write(100);
    EXPECT_TRUE(Has(*copies, copy, step));
  }
}

TEST_F(RegionCopiesTest, WithOverlapTheSourcesMayChangeAtOnce) {
  const auto copies = Make(/*overlaps=*/true).value();
  for (uint8_t step = 1; step < 5; ++step) {
    Write(step);
    const uint64_t copy = copies->Begin().value();
    Write(100);
    EXPECT_TRUE(Has(*copies, copy, step));
  }
}

TEST_F(RegionCopiesTest, TheSecondNextCopyOverwrites) {
  const auto copies = Make(/*overlaps=*/false).value();
  Write(1);
  const uint64_t first = copies->Begin().value();
  EXPECT_TRUE(copies->AwaitRead().ok());
  Write(2);
  (void)copies->Begin().value();
  EXPECT_TRUE(Has(*copies, first, 1));
  EXPECT_TRUE(copies->WaitOn(first, std::nullopt).ok());
  (void)copies->Begin().value();
  EXPECT_EQ(CodeOf(copies->WaitOn(first, std::nullopt)),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(copies->WaitOn(first, CudaStreamOfNumber(1))),
            ErrorCode::kInvalidArgument);
}

TEST_F(RegionCopiesTest, ARegionThatTheProgramHasPinnedStaysPinned) {
  const auto context = PrimaryContext::Of(**CudaDriver::Load(), 0).value();
  const CurrentContext current(*context);
  ASSERT_EQ(context->cuda().MemHostRegister(mapping_->base(), kRegionBytes, 0),
            kCudaSuccess);
  Write(3);
  {
    const auto copies = Make(/*overlaps=*/false).value();
    EXPECT_TRUE(Has(*copies, copies->Begin().value(), 3));
  }
  EXPECT_EQ(context->cuda().MemHostUnregister(mapping_->base()), kCudaSuccess);
}

TEST_F(RegionCopiesTest, ThreadsMayMakeAndDropThemAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int times = 0; times < 10; ++times) {
        EXPECT_TRUE(Make(/*overlaps=*/false).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Nothing is pinned any more: else this would be refused.
  const auto context = PrimaryContext::Of(**CudaDriver::Load(), 0).value();
  const CurrentContext current(*context);
  EXPECT_EQ(context->cuda().MemHostRegister(mapping_->base(), kRegionBytes, 0),
            kCudaSuccess);
  EXPECT_EQ(context->cuda().MemHostUnregister(mapping_->base()), kCudaSuccess);
}

TEST_F(RegionCopiesTest, OtherThreadsMayWaitForCopiesDuringBegin) {
  const auto copies = Make(/*overlaps=*/true).value();
  Write(1);
  std::atomic<uint64_t> newest{copies->Begin().value()};
  std::vector<std::thread> threads;
  for (uintptr_t stream = 1; stream < 3; ++stream) {
    threads.emplace_back([&, stream] {
      for (int times = 0; times < 2000; ++times) {
        const absl::Status status =
            // relaxed: any copy so far will do.
            copies->WaitOn(newest.load(std::memory_order_relaxed),
                           CudaStreamOfNumber(stream));
        EXPECT_TRUE(status.ok() ||
                    CodeOf(status) == ErrorCode::kInvalidArgument)
            << status;
      }
    });
  }
  for (uint8_t step = 2; step < 20; ++step) {
    Write(step);
    // relaxed: as above.
    newest.store(copies->Begin().value(), std::memory_order_relaxed);
  }
  for (std::thread& thread : threads) thread.join();
  // relaxed: this thread's own store.
  EXPECT_TRUE(Has(*copies, newest.load(std::memory_order_relaxed), 19));
}

}  // namespace
}  // namespace tandem
