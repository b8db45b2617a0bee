#include "engine_adapter/core/pcg64.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

// The bits are those of NumPy 2.4.6: PCG64(seed).random_raw(3).
TEST(Pcg64, EqualsNumPys) {
  Pcg64 first(SeedWords(0));
  EXPECT_EQ(first.Next(), 0xa30febcfd9c2825f);
  EXPECT_EQ(first.Next(), 0x4510bdf882d9d721);
  EXPECT_EQ(first.Next(), 0x0a7d3da94ecde8b8);
  Pcg64 last(SeedWords(~uint64_t{0}));
  EXPECT_EQ(last.Next(), 0xae163a7a8c47568f);
  EXPECT_EQ(last.Next(), 0xd86659f5f3382359);
  EXPECT_EQ(last.Next(), 0x01e52b195bc2d24a);
}

TEST(Pcg64, ACopyGoesOnAlone) {
  Pcg64 bits(SeedWords(0));
  bits.Next();
  Pcg64 copy = bits;
  EXPECT_EQ(copy.Next(), 0x4510bdf882d9d721);
  EXPECT_EQ(bits.Next(), 0x4510bdf882d9d721);
}

}  // namespace
}  // namespace tandem
