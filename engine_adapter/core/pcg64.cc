#include "engine_adapter/core/pcg64.h"

#include <cstddef>

namespace tandem {
namespace {

using Pool = std::array<uint32_t, 4>;

uint32_t FoldHighHalf(uint32_t word) { return word ^ (word >> 16); }

// A hash; its key changes after each word.
class WordHash {
 public:
  WordHash(uint32_t first_key, uint32_t key_factor)
      : key_(first_key), key_factor_(key_factor) {}

  uint32_t operator()(uint32_t word) {
    word ^= key_;
    key_ *= key_factor_;
    return FoldHighHalf(word * key_);
  }

 private:
  uint32_t key_;
  const uint32_t key_factor_;
};

uint32_t Combine(uint32_t word, uint32_t other) {
  return FoldHighHalf(0xca01f9ddU * word - 0x4973f715U * other);
}

Pool MixedPool(uint64_t seed) {
  // NumPy omits a high word of zero, and hashes zeros in the place of missing
  // words; the result is the same.
  const Pool words = {static_cast<uint32_t>(seed),
                      static_cast<uint32_t>(seed >> 32), 0, 0};
  WordHash hash(0x43b0d7e5U, 0x931e8875U);
  Pool pool;
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = hash(words[i]);
  for (size_t from = 0; from < pool.size(); ++from) {
    for (size_t to = 0; to < pool.size(); ++to) {
      if (from != to) pool[to] = Combine(pool[to], hash(pool[from]));
    }
  }
  return pool;
}

}  // namespace

std::array<uint64_t, 4> SeedWords(uint64_t seed) {
  const Pool pool = MixedPool(seed);
  WordHash hash(0x8b51f9ddU, 0x58f38dedU);
  std::array<uint64_t, 4> words;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t low = hash(pool[2 * i % pool.size()]);
    const uint64_t high = hash(pool[(2 * i + 1) % pool.size()]);
    words[i] = high << 32 | low;
  }
  return words;
}

}  // namespace tandem
