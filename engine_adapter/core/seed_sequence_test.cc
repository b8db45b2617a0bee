#include <gtest/gtest.h>

#include "engine_adapter/core/pcg64.h"

namespace tandem {
namespace {

using Words = std::array<uint64_t, 4>;

// The words are NumPy 2.4.6's.
TEST(SeedWords, EqualNumPysForSeedsOfOneWordAndOfTwo) {
  EXPECT_EQ(SeedWords(0), (Words{0xdb2cd7e7b0f478be, 0xabf4641a2c71ba49,
                                 0x20c6ed6d9d7b8d41, 0x2c4099de223c39d4}));
  EXPECT_EQ(SeedWords(uint64_t{1} << 32),
            (Words{0x50ff846cec53f444, 0x7a4918dbe8278562, 0x3bff9f6c362e2b19,
                   0xbdb177539a0654e3}));
  EXPECT_EQ(SeedWords(~uint64_t{0}),
            (Words{0xaebca151928cad0d, 0x119c30448638dc7a, 0x1bbb155659e642a7,
                   0xa76b11e3e8c4a8f6}));
}

}  // namespace
}  // namespace tandem
