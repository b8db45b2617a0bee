// Writes the draws of an EnvRandom to stdout, for env_random_numpy_test.py.
//
//   env_random_draws SEED LOW HIGH ROUNDS UNIFORMS NORMALS
//
// Each round draws UNIFORMS times from [LOW, HIGH), then NORMALS times from the
// normal distribution; the output has the raw doubles in this order.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine_adapter/core/env_random.h"

namespace {

uint64_t Integer(const char* text) { return std::strtoull(text, nullptr, 10); }

void Write(double draw) {
  if (std::fwrite(&draw, sizeof draw, 1, stdout) != 1) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "expected six arguments, found %d\n", argc - 1);
    return 2;
  }
  tandem::EnvRandom random(Integer(argv[1]));
  const double low = std::strtod(argv[2], nullptr);
  const double high = std::strtod(argv[3], nullptr);
  const uint64_t rounds = Integer(argv[4]);
  const uint64_t uniforms = Integer(argv[5]);
  const uint64_t normals = Integer(argv[6]);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t i = 0; i < uniforms; ++i) Write(random.Uniform(low, high));
    for (uint64_t i = 0; i < normals; ++i) Write(random.StandardNormal());
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
