// EnvRandom: the random stream of one environment.
//
// Data flow: seed -> draws of reset noise. The same seed gives the same draws,
// whatever thread makes them.
// Ownership: the engine keeps one for each environment; an Environment draws
// from it.
//
//   EnvRandom random(seed);
//   double offset = random.Uniform(-0.1, 0.1);

#ifndef TANDEM_ENGINE_ADAPTER_CORE_ENV_RANDOM_H_
#define TANDEM_ENGINE_ADAPTER_CORE_ENV_RANDOM_H_

#include <cstdint>
#include <random>

namespace tandem {

// Not thread-safe. The one place that knows which generator it is.
class EnvRandom {
 public:
  explicit EnvRandom(uint64_t seed) : bits_(seed) {}

  // In [low, high).
  double Uniform(double low, double high) {
    return low + (high - low) * std::generate_canonical<double, 53>(bits_);
  }
  double StandardNormal() { return normal_(bits_); }

 private:
  std::mt19937_64 bits_;
  std::normal_distribution<double> normal_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_ENV_RANDOM_H_
