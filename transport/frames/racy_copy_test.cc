#include "transport/frames/racy_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace tandem {
namespace {

TEST(RacyCopy, CopiesAnyLengthAtAnyAlignment) {
  constexpr std::byte kUntouched{0xA5};
  std::vector<std::byte> from(512);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<std::byte>(i * 7 + 1);
  }
  for (const Cache cache : {Cache::kInto, Cache::kPast}) {
    for (size_t to_at = 0; to_at < 66; ++to_at) {
      for (const size_t from_at : {0, 1, 8, 63}) {
        for (const size_t bytes :
             {0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 200, 300}) {
          std::vector<std::byte> to(512, kUntouched);
          RacyCopy(std::span(to).subspan(to_at),
                   std::span(from).subspan(from_at, bytes), cache);
          StoresBefore();
          ASSERT_TRUE(
              std::equal(&from[from_at], &from[from_at] + bytes, &to[to_at]))
              << to_at << " " << from_at << " " << bytes;
          for (size_t i = 0; i < to.size(); ++i) {
            if (i < to_at || i >= to_at + bytes) {
              ASSERT_EQ(to[i], kUntouched) << to_at << " " << bytes;
            }
          }
        }
      }
    }
  }
}

TEST(RacyCopy, GoesPastTheCacheForLargeFramesInLargeRingsOnly) {
  constexpr uint64_t kLarge = 640 * 480 * 3;
  constexpr uint64_t kHuge = 1920 * 1080 * 3;
  EXPECT_EQ(CacheFor(84 * 84 * 3, 128 * 84 * 84 * 3), Cache::kInto);
  EXPECT_EQ(CacheFor(84 * 84 * 3, uint64_t{1} << 30), Cache::kInto);
  EXPECT_EQ(CacheFor(kLarge, 128 * kLarge), Cache::kPast);
  EXPECT_EQ(CacheFor(kHuge, 4 * kHuge), Cache::kPast);
  EXPECT_EQ(CacheFor(kLarge, kLarge), Cache::kInto);
}

}  // namespace
}  // namespace tandem
