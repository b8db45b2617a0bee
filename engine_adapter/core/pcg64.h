// Pcg64: random bits, equal to those of NumPy's PCG64. SeedWords: its initial
// state from a seed, as NumPy's SeedSequence computes it.
//
// Data flow: a seed -> four words -> a state of 128 bits -> 64 random bits a
// draw.
// Ownership: a value type; copies continue with the same draws, independently.
//
//   Pcg64 bits(SeedWords(seed));
//   uint64_t sixty_four = bits.Next();

#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tandem {

// Equals numpy.random.SeedSequence(seed).generate_state(4, numpy.uint64). The
// method is O'Neill's alternative to std::seed_seq: seeds that differ in one
// bit give unrelated words.
std::array<uint64_t, 4> SeedWords(uint64_t seed);

// O'Neill's PCG XSL RR 128/64: a linear congruential generator whose halves
// are xored and then rotated by its highest six bits. Not thread-safe.
class Pcg64 {
 public:
  // `seed`: the state's high and low word, then the stream's.
  explicit Pcg64(const std::array<uint64_t, 4>& seed)
      : increment_(Join(seed[2], seed[3]) << 1 | 1),
        state_(increment_ + Join(seed[0], seed[1])) {
    Advance();
  }

  uint64_t Next() {
    Advance();
    const auto high = static_cast<uint64_t>(state_ >> 64);
    const auto low = static_cast<uint64_t>(state_);
    return std::rotr(high ^ low, static_cast<int>(high >> 58));
  }

 private:
  using Uint128 = unsigned __int128;

  static constexpr Uint128 Join(uint64_t high, uint64_t low) {
    return Uint128{high} << 64 | low;
  }
  void Advance() {
    state_ = state_ * Join(0x2360ed051fc65da4, 0x4385df649fccf645) + increment_;
  }

  Uint128 increment_;
  Uint128 state_;
};

}  // namespace tandem
