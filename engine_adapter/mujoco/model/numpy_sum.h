// Sums in NumPy's order of additions: the rounding is NumPy's.
//
//   float cost = weight * SumOfSquares<float>(action);
//   double mass = NumpySum<double>(0, nbody, [&](size_t i) { return m[i]; });

#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace tandem {

// Equals numpy.sum of a contiguous array T[end - begin]; value(i) returns
// element i. NumPy adds eight interleaved sums for up to 128 elements, and
// halves a longer array.
template <typename T, typename Value>
T NumpySum(size_t begin, size_t end, const Value& value) {
  constexpr size_t kLanes = 8;
  constexpr size_t kMost = 128;
  const size_t n = end - begin;
  if (n > kMost) {
    const size_t half = n / 2 - n / 2 % kLanes;
    return NumpySum<T>(begin, begin + half, value) +
           NumpySum<T>(begin + half, end, value);
  }
  T sum = 0;
  size_t i = begin;
  if (n >= kLanes) {
    std::array<T, kLanes> lane;
    for (T& each : lane) each = value(i++);
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) lane[k] += value(i + k);
    }
    sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
          ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  }
  for (; i < end; ++i) sum += value(i);
  return sum;
}

// Equals numpy.sum(numpy.square(values)).
template <typename T>
T SumOfSquares(std::span<const T> values) {
  return NumpySum<T>(0, values.size(),
                     [&](size_t i) { return values[i] * values[i]; });
}

}  // namespace tandem
