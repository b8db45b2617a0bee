// EnvRandom: the random stream of one environment, bit by bit equal to
// Gymnasium's. NormalLayers: the tables for normal draws.
//
// Data flow: seed -> SeedWords -> Pcg64 -> draws of reset noise. The same seed
// gives the same draws, in any thread.
// Ownership: the engine keeps one for each environment; its task draws from it.
// A value type: a copy continues with the same draws, independently.
//
//   EnvRandom random(seed);
//   double offset = random.Uniform(-0.1, 0.1);
//   double speed = 0.1 * random.StandardNormal();

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine_adapter/core/pcg64.h"

namespace tandem {

// Marsaglia and Tsang's layers of exp(-x^2 / 2), x >= 0. Layer 1 is the
// highest, layer 255 the lowest. Layer 0 is the area below all of them: a box
// as wide as the lowest edge, and the tail beyond it. A random integer of 52
// bits times `unit` is a position in the layer.
struct NormalLayers {
  static constexpr size_t kCount = 256;
  static constexpr double kTailStart = 3.6541528853610088;  // the lowest edge

  static const NormalLayers& Get();

  std::array<uint64_t, kCount> sure;   // a smaller integer is under the curve
  std::array<double, kCount> unit;     // the edge / 2^52
  std::array<double, kCount> density;  // the curve at the edge; [0]: at x = 0
};

// Draws the same numbers as gymnasium.utils.seeding.np_random(seed), which is
// NumPy's Generator(PCG64(SeedSequence(seed))). A NumPy draw of `size=n` equals
// n draws here. Gymnasium's reset(seed=...) makes such a stream; a reset
// without a seed continues it.
//
// Not thread-safe. Draws neither block nor allocate.
class EnvRandom {
 public:
  explicit EnvRandom(uint64_t seed) : bits_(SeedWords(seed)) {}

  // As Generator.uniform: a number in [low, high); rounding may give `high`.
  double Uniform(double low, double high);
  // As Generator.standard_normal. Beyond 3.65 (one draw in 3,900) the last bit
  // depends on the C library's log1p; so does NumPy's.
  double StandardNormal();

 private:
  double Unit();  // in [0, 1), in steps of 2^-53
  double BeyondTailStart();
  bool IsUnderCurve(size_t layer, double x);

  Pcg64 bits_;
};

}  // namespace tandem
