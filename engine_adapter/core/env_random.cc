#include "engine_adapter/core/env_random.h"

#include <cmath>

namespace tandem {
namespace {

constexpr double kArea = 0.0049286732339746519;  // of each layer
constexpr double kPlaces = 0x1p52;

// NumPy's tables come from the C library of one machine. Its exp rounded one
// of the 256 values differently; the layers above it depend on that value.
constexpr size_t kRoundedUp = 38;

// Computed in long double: exp and log of double differ in the last bit between
// processors.
double Density(double x) {
  return static_cast<double>(std::exp(static_cast<long double>(-0.5 * x * x)));
}

double EdgeAt(double density) {
  const long double log = std::log(static_cast<long double>(density));
  return std::sqrt(-2 * static_cast<double>(log));
}

// Marsaglia and Tsang's recurrence, from the lowest edge up.
NormalLayers Compute() {
  NormalLayers layers = {};
  std::array<double, NormalLayers::kCount> edge = {};
  edge.back() = NormalLayers::kTailStart;
  for (size_t i = NormalLayers::kCount - 1; i > 0; --i) {
    layers.density[i] = Density(edge[i]);
    if (i == kRoundedUp) {
      layers.density[i] = std::nextafter(layers.density[i], 1.0);
    }
    if (i > 1) edge[i - 1] = EdgeAt(layers.density[i] + kArea / edge[i]);
  }
  layers.density[0] = 1;
  const double lowest = layers.density.back();
  layers.unit[0] = kArea / lowest / kPlaces;
  layers.sure[0] = static_cast<uint64_t>(
      std::nearbyint(edge.back() * lowest / kArea * kPlaces));
  for (size_t i = 1; i < NormalLayers::kCount; ++i) {
    layers.unit[i] = edge[i] / kPlaces;
    layers.sure[i] =
        static_cast<uint64_t>(std::nearbyint(edge[i - 1] / edge[i] * kPlaces));
  }
  return layers;
}

}  // namespace

const NormalLayers& NormalLayers::Get() {
  static const NormalLayers layers = Compute();
  return layers;
}

double EnvRandom::Uniform(double low, double high) {
  return low + (high - low) * Unit();
}

// Marsaglia and Tsang's ziggurat. A draw has 64 random bits: 8 select the
// layer, one is the sign, 52 are the position in the layer. The highest three
// bits are unused.
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
