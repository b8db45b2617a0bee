#include "engine_adapter/core/env_random.h"

#include <cmath>

#include "engine_adapter/core/normal_layers.h"
#include "engine_adapter/core/pcg64.h"

namespace tandem {

EnvRandom::EnvRandom(uint64_t seed) : bits_(SeedWords(seed)) {}

double EnvRandom::Uniform(double low, double high) {
  return low + (high - low) * Unit();
}

// Marsaglia and Tsang's ziggurat. Of 64 random bits, 8 choose the layer, one
// the sign, 52 the place in the layer; the highest three stay unused.
double EnvRandom::StandardNormal() {
  const NormalLayers& layers = NormalLayers::Get();
  for (;;) {
    const uint64_t bits = bits_.Next();
    const size_t layer = bits & 0xff;
    const bool negative = (bits >> 8 & 1) != 0;
    const uint64_t place = bits >> 9 & ((uint64_t{1} << 52) - 1);
    const double distance = static_cast<double>(place) * layers.unit[layer];
    const double x = negative ? -distance : distance;
    if (place < layers.sure[layer]) return x;
    if (layer == 0) {
      const double beyond = BeyondTailStart();
      // NumPy takes the tail's sign from another bit.
      return (place >> 8 & 1) != 0 ? -beyond : beyond;
    }
    if (IsUnderCurve(layer, x)) return x;
  }
}

double EnvRandom::Unit() {
  return static_cast<double>(bits_.Next() >> 11) * 0x1p-53;
}

double EnvRandom::BeyondTailStart() {
  constexpr double kStart = NormalLayers::kTailStart;
  for (;;) {
    const double beyond = -(1.0 / kStart) * std::log1p(-Unit());
    const double height = -std::log1p(-Unit());
    if (height + height > beyond * beyond) return kStart + beyond;
  }
}

bool EnvRandom::IsUnderCurve(size_t layer, double x) {
  const NormalLayers& layers = NormalLayers::Get();
  const double bottom = layers.density[layer];
  const double top = layers.density[layer - 1];
  return (top - bottom) * Unit() + bottom < std::exp(-0.5 * x * x);
}

}  // namespace tandem
