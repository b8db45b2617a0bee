// Both ends of a caller's image slots, in one thread and in two, so that
// ThreadSanitizer (--config=tsan) can check them.
#include "transport/frames/image_slot.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "schema/layout/image_slot.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

constexpr uint32_t kSlotBytes = 4096;

OwnedRegion Region(uint32_t slot_bytes = kSlotBytes) {
  absl::StatusOr<OwnedRegion> region =
      OwnedRegion::Create(UniqueRegionName("image-slots"),
                          {.num_envs = 1,
                           .obs_size = 1,
                           .act_size = 1,
                           .task = "slots",
                           .attendants = true,
                           .image_slot_bytes = slot_bytes},
                          {});
  EXPECT_TRUE(region.ok()) << region.status();
  return *std::move(region);
}

ImagePlace PlaceIn(const OwnedRegion& region, size_t caller = 0) {
  return ImagePlace::Of(region.mapping(), *region.mapping()->header(), caller);
}

std::vector<std::byte> Image(size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

bool HasOnly(const ImageLease& lease, int value) {
  return std::ranges::all_of(lease.bytes(), [&](std::byte byte) {
    return byte == static_cast<std::byte>(value);
  });
}

// With a writer for the client's slots, and its caller's leases.
class ImageSlotTest : public testing::Test {
 protected:
  ImageSlotTest() { writer_.Begin(); }
  ImageLease Lease(size_t bytes, int value) {
    return LeaseOf(PlaceIn(region_), writer_.Write(Image(bytes, value)));
  }

  const OwnedRegion region_ = Region();
  ImageSlotWriter writer_{PlaceIn(region_)};
};

TEST_F(ImageSlotTest, CallerReadsTheImageInPlace) {
  const ImageNotice notice = writer_.Write(Image(100, 7));
  const ImageLease lease = LeaseOf(PlaceIn(region_), notice);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease.bytes().size(), 100u);
  EXPECT_TRUE(HasOnly(lease, 7));
  EXPECT_TRUE(lease.IsIntact());
}

TEST_F(ImageSlotTest, HeldImagesStayAndFurtherOnesUseTheRing) {
  std::optional<ImageLease> first = Lease(kSlotBytes, 1);
  const ImageLease second = Lease(kSlotBytes, 2);
  EXPECT_EQ(writer_.Write(Image(1, 3)).seq, 0u);
  EXPECT_TRUE(HasOnly(*first, 1) && HasOnly(second, 2));
  first.reset();
  const ImageLease third = Lease(kSlotBytes, 4);
  EXPECT_TRUE(HasOnly(third, 4) && HasOnly(second, 2));
  EXPECT_TRUE(third.IsIntact() && second.IsIntact());
}

TEST(ImageSlot, CallersHaveSlotsOfTheirOwn) {
  const OwnedRegion region = Region();
  std::vector<ImageLease> leases;
  for (size_t caller = 0; caller < 1 + kAttendantSlots; ++caller) {
    ImageSlotWriter writer(PlaceIn(region, caller));
    writer.Begin();
    for (int i = 0; i < 2; ++i) {
      leases.push_back(LeaseOf(
          PlaceIn(region, caller),
          writer.Write(Image(kSlotBytes, static_cast<int>(leases.size())))));
    }
  }
  ASSERT_EQ(leases.size(), kImageSlots);
  for (size_t i = 0; i < leases.size(); ++i) {
    EXPECT_TRUE(HasOnly(leases[i], static_cast<int>(i))) << i;
  }
}

TEST_F(ImageSlotTest, LateReadAfterTheSessionIsDetected) {
  const ImageLease old = Lease(64, 1);
  writer_.Begin();  // the next caller
  EXPECT_TRUE(old.IsIntact());
  const ImageLease current = Lease(64, 2);
  EXPECT_FALSE(old.IsIntact());
  EXPECT_TRUE(current.IsIntact());
}

TEST_F(ImageSlotTest, LateReleaseDoesNotFreeTheImageOfTheNextCaller) {
  std::optional<ImageLease> old = Lease(64, 1);
  writer_.Begin();
  std::optional<ImageLease> first = Lease(64, 2);
  const ImageLease second = Lease(64, 3);
  old.reset();
  EXPECT_EQ(writer_.Write(Image(64, 4)).seq, 0u);
  first.reset();
  EXPECT_NE(writer_.Write(Image(64, 5)).seq, 0u);
}

TEST_F(ImageSlotTest, LateReleaseDoesNotUndoThatOfTheNextCaller) {
  std::optional<ImageLease> old = Lease(64, 1);
  writer_.Begin();
  { const ImageLease next = Lease(64, 2); }
  const ImageLease held = Lease(64, 3);
  old.reset();
  const ImageNotice notice = writer_.Write(Image(64, 4));
  EXPECT_NE(notice.seq, 0u);
}

TEST(ImageSlot, InvalidNoticeGivesNoImage) {
  const OwnedRegion region = Region();
  const ImagePlace place = PlaceIn(region);
  EXPECT_FALSE(LeaseOf(place, {.seq = 4, .bytes = 0, .slot = 0}));
  EXPECT_FALSE(LeaseOf(place, {.seq = 4, .bytes = kSlotBytes + 1}));
  EXPECT_FALSE(LeaseOf(place, {.seq = 4, .bytes = 1, .slot = 2}));
  EXPECT_FALSE(LeaseOf(ImagePlace(), {.seq = 4, .bytes = 1, .slot = 0}));
}

TEST_F(ImageSlotTest, EmptyOrTooLargeImagesUseTheRing) {
  EXPECT_EQ(writer_.Write({}).seq, 0u);
  EXPECT_EQ(writer_.Write(Image(kSlotBytes + 1, 1)).seq, 0u);
  EXPECT_NE(writer_.Write(Image(kSlotBytes, 1)).seq, 0u);
}

TEST(ImageSlot, RegionWithoutSlotsUsesTheRing) {
  const OwnedRegion region = Region(0);
  EXPECT_FALSE(PlaceIn(region));
  ImageSlotWriter writer(PlaceIn(region));
  writer.Begin();
  EXPECT_EQ(writer.Write(Image(1, 1)).seq, 0u);
}

TEST(ImageSlot, AnyWordsInASlotHarmOnlyItsCaller) {
  const OwnedRegion region = Region();
  ImageSlotWriter of_another(PlaceIn(region, 0));
  of_another.Begin();
  const ImageLease held =
      LeaseOf(PlaceIn(region, 0), of_another.Write(Image(kSlotBytes, 5)));
  ImageSlotWriter writer(PlaceIn(region, 1));
  writer.Begin();
  for (const uint64_t word : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    for (size_t slot = 0; slot < kSlotsOfCaller; ++slot) {
      ImageSlot* const shared = PlaceIn(region, 1).slot(slot);
      // relaxed: the test has one thread.
      shared->seq.store(word, std::memory_order_relaxed);
      shared->released.store(word, std::memory_order_relaxed);
    }
    (void)writer.Write(Image(kSlotBytes, 1));
    EXPECT_TRUE(held.IsIntact() && HasOnly(held, 5)) << word;
  }
  writer.Begin();
  const ImageLease lease =
      LeaseOf(PlaceIn(region, 1), writer.Write(Image(64, 9)));
  EXPECT_TRUE(lease && lease.IsIntact() && HasOnly(lease, 9));
}

TEST_F(ImageSlotTest, ForkedChildReleasesNothing) {
  auto first = std::make_unique<ImageLease>(Lease(64, 1));
  const ImageLease second = Lease(64, 2);
  const pid_t child = fork();
  if (child == 0) {
    first.reset();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(writer_.Write(Image(64, 3)).seq, 0u);
  first.reset();
  EXPECT_NE(writer_.Write(Image(64, 3)).seq, 0u);
}

// The notice goes through one word, as through a ring.
TEST_F(ImageSlotTest, EveryImageIsWhole) {
  alarm(300);
  constexpr int kImages = 2'000;
  ImageNotice notice;
  std::atomic<int> sent{0};   // writer: this thread
  std::atomic<int> taken{0};  // writer: the other thread
  int torn = 0;
  std::thread caller([&] {
    std::optional<ImageLease> held;
    for (int number = 1; number <= kImages; ++number) {
      while (sent.load(std::memory_order_acquire) != number) {
        std::this_thread::yield();
      }
      std::optional<ImageLease> lease(LeaseOf(PlaceIn(region_), notice));
      taken.store(number, std::memory_order_release);
      torn += !HasOnly(*lease, number % 256) || !lease->IsIntact();
      if (held) torn += !HasOnly(*held, (number - 1) % 256);
      held = std::move(lease);
    }
  });
  std::vector<std::byte> image(kSlotBytes);
  for (int number = 1; number <= kImages; ++number) {
    std::ranges::fill(image, static_cast<std::byte>(number % 256));
    while ((notice = writer_.Write(image)).seq == 0) std::this_thread::yield();
    sent.store(number, std::memory_order_release);
    while (taken.load(std::memory_order_acquire) != number) {
      std::this_thread::yield();
    }
  }
  caller.join();
  EXPECT_EQ(torn, 0);
  alarm(0);
}

}  // namespace
}  // namespace tandem
