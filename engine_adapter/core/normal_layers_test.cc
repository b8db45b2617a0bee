#include <gtest/gtest.h>

#include <bit>

#include "engine_adapter/core/env_random.h"

namespace tandem {
namespace {

// FNV-1a over 64-bit words.
template <typename Table>
uint64_t Fingerprint(const Table& table) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto entry : table) {
    hash = (hash ^ std::bit_cast<uint64_t>(entry)) * 0x100000001b3;
  }
  return hash;
}

// Draws detect a wrong `unit` at once, but seldom a `sure` or a `density` with
// a wrong last bit. The fingerprints are those of NumPy's tables.
TEST(NormalLayers, EveryEntryEqualsNumPys) {
  const NormalLayers& layers = NormalLayers::Get();
  EXPECT_EQ(Fingerprint(layers.sure), 0x7ea1a7e349ac15b9);
  EXPECT_EQ(Fingerprint(layers.unit), 0xd986c81d16602f41);
  EXPECT_EQ(Fingerprint(layers.density), 0x0f4029a20099d656);
}

}  // namespace
}  // namespace tandem
