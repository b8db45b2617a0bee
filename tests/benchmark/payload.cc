#include "tests/benchmark/payload.h"

namespace tandem {

// Aligned: the position of its loops in cache lines changed the largest step by
// a sixth.
[[gnu::aligned(64)]] float StepOne(const Size& size, const float* action,
                                   float* obs) {
  float sum = 0;
  for (uint32_t i = 0; i < size.act; ++i) sum += action[i];
  for (uint32_t i = 0; i < size.obs; ++i) {
    obs[i] = sum + static_cast<float>(i);
  }
  return sum;
}

}  // namespace tandem
