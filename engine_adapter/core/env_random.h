// EnvRandom: the random stream of one environment, Gymnasium's bit for bit.
// NormalLayers: the tables of its normal draws.
//
// Data flow: seed -> SeedWords -> Pcg64 -> draws of reset noise. The same seed
// gives the same draws, whatever thread makes them.
// Ownership: the engine keeps one for each environment; its task draws from it.
// A value: a copy goes on with the same draws, for itself.
//
//   EnvRandom random(seed);
//   double offset = random.Uniform(-0.1, 0.1);
//   double speed = 0.1 * random.StandardNormal();

#ifndef TANDEM_ENGINE_ADAPTER_CORE_ENV_RANDOM_H_
#define TANDEM_ENGINE_ADAPTER_CORE_ENV_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine_adapter/core/pcg64.h"

namespace tandem {

// Marsaglia and Tsang's layers of exp(-x^2 / 2), x >= 0, counted from the
// highest, 1, to the lowest, 255. Layer 0 is what lies below all of them: a
// box as wide as the lowest edge, and the tail beyond it. A random integer of
// 52 bits times `unit` is a place in the layer.
struct NormalLayers {
  static constexpr size_t kCount = 256;
  static constexpr double kTailStart = 3.6541528853610088;  // the lowest edge

  static const NormalLayers& Get();

  std::array<uint64_t, kCount> sure;   // integers below it: under the curve
  std::array<double, kCount> unit;     // the edge / 2^52
  std::array<double, kCount> density;  // the curve at the edge; [0]: at x = 0
};

// Equals gymnasium.utils.seeding.np_random(seed), which is NumPy's
// Generator(PCG64(SeedSequence(seed))), draw by draw; a NumPy draw of `size=n`
// is n draws here. Gymnasium's reset(seed=...) makes such a stream, a reset
// without a seed goes on with it.
//
// Not thread-safe. Draws neither block nor allocate.
class EnvRandom {
 public:
  explicit EnvRandom(uint64_t seed);

  // As Generator.uniform: in [low, high), where rounding may give `high`.
  double Uniform(double low, double high);
  // As Generator.standard_normal. Beyond 3.65 (one draw in 3,900) its last bit
  // is as the C library's log1p rounds, NumPy's too.
  double StandardNormal();

 private:
  double Unit();  // in [0, 1), in steps of 2^-53
  double BeyondTailStart();
  bool IsUnderCurve(size_t layer, double x);

  Pcg64 bits_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_ENV_RANDOM_H_
