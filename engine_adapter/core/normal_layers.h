// NormalLayers: 256 layers of equal area under the normal curve, with the very
// numbers that NumPy's ziggurat uses.
//
// Data flow: computed at the first call -> EnvRandom::StandardNormal.
// Ownership: constants of the program.
//
//   const NormalLayers& layers = NormalLayers::Get();
//   double x = static_cast<double>(bits) * layers.unit[i];
//   bool lies_under_the_curve_for_sure = bits < layers.sure[i];

#ifndef TANDEM_ENGINE_ADAPTER_CORE_NORMAL_LAYERS_H_
#define TANDEM_ENGINE_ADAPTER_CORE_NORMAL_LAYERS_H_

#include <array>
#include <cstddef>
#include <cstdint>

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

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_NORMAL_LAYERS_H_
