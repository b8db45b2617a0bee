#include "engine_adapter/core/normal_layers.h"

#include <cmath>

namespace tandem {
namespace {

// NumPy's tables were computed in doubles, from the lowest edge up, so that
// each entry carries the rounding of those below it. The same steps in the
// same order give the same numbers. What follows was found by comparing.

constexpr double kPlaces = 0x1p52;
// Four units in the last place below the true area of a layer.
constexpr double kArea = 0x1.43016a5a4372ep-8;

// Correctly rounded, which not every machine's double functions are.
double Exp(double x) {
  return static_cast<double>(std::exp(static_cast<long double>(x)));
}
double Log(double x) {
  return static_cast<double>(std::log(static_cast<long double>(x)));
}

double DensityAtEdge(size_t layer, double edge) {
  const double density = Exp(-0.5 * edge * edge);
  // The one entry that NumPy's table has rounded up, against all others; those
  // above it follow from it.
  constexpr size_t kRoundedUp = 38;
  return layer == kRoundedUp ? std::nextafter(density, 1.0) : density;
}

NormalLayers MakeLayers() {
  NormalLayers layers;
  double edge = NormalLayers::kTailStart;
  for (size_t i = NormalLayers::kCount - 1; i > 0; --i) {
    layers.unit[i] = edge / kPlaces;
    layers.density[i] = DensityAtEdge(i, edge);
    const double edge_above =
        i == 1 ? 0 : std::sqrt(-2.0 * Log(kArea / edge + layers.density[i]));
    layers.sure[i] =
        static_cast<uint64_t>(std::nearbyint(edge_above / edge * kPlaces));
    edge = edge_above;
  }
  // Of layer 0, with its tail made a box of equal area.
  const double width = kArea / layers.density[NormalLayers::kCount - 1];
  layers.unit[0] = width / kPlaces;
  layers.density[0] = 1;
  layers.sure[0] =
      static_cast<uint64_t>(NormalLayers::kTailStart / width * kPlaces);
  return layers;
}

}  // namespace

const NormalLayers& NormalLayers::Get() {
  static const NormalLayers layers = MakeLayers();
  return layers;
}

}  // namespace tandem
