#include "engine_adapter/mujoco/randomization/restitution.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr double kLeastRatio = 1e-4;
constexpr double kMostRatio = 1e4;

}  // namespace

double RestitutionOf(double damping_ratio) {
  const double z = damping_ratio;
  const double s = std::sqrt(std::abs(1 - z * z));
  if (s < 1e-6) return std::exp(-2.0);
  const double rest = z < 1 ? std::atan2(2 * z * s, 2 * z * z - 1)
                            : std::log((z + s) / (z - s));
  return std::exp(-z / s * rest);
}

double DampingRatioFor(double restitution) {
  double low = kLeastRatio;
  double high = kMostRatio;
  // Halves the interval's logarithm until nothing is left of it.
  for (int i = 0; i < 64; ++i) {
    const double middle = std::sqrt(low * high);
    (RestitutionOf(middle) > restitution ? low : high) = middle;
  }
  return high;
}

void SetRestitution(double restitution, double timestep, mjtNum* solref) {
  const double ratio = DampingRatioFor(restitution);
  if (solref[0] > 0) {  // (time constant, damping ratio)
    // The stiffness goes by their product. MuJoCo itself takes a time constant
    // below two steps for two.
    const double product = solref[0] * solref[1];
    solref[0] = std::max(product / ratio, 2 * timestep);
    solref[1] = product / solref[0];
  } else {  // (-stiffness, -damping)
    const double damping = 2 * ratio * std::sqrt(-solref[0]);
    solref[1] = -std::min(damping, 1 / timestep);
  }
}

}  // namespace tandem
