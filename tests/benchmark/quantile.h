// Quantile: the smallest value that at least a fraction q of the values does
// not exceed. Its twin in Python is quantile.py.
//
//   std::sort(nanos.begin(), nanos.end());
//   const int64_t p99 = Quantile(nanos, 0.99);

#ifndef TANDEM_TESTS_BENCHMARK_QUANTILE_H_
#define TANDEM_TESTS_BENCHMARK_QUANTILE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

// Of sorted values; 0 when there are none.
inline int64_t Quantile(const std::vector<int64_t>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double count = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[std::max<size_t>(static_cast<size_t>(count), 1) - 1];
}

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_QUANTILE_H_
