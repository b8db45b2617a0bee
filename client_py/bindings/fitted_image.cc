#include "client_py/bindings/fitted_image.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "client_py/bindings/errors.h"

namespace tandem {
namespace py = pybind11;
namespace {

constexpr size_t kChannels = 3;

// Where pixel i of `size` begins among `from` pixels. A pixel stands for those
// up to the next one's, at least for one.
size_t Begin(size_t i, size_t from, size_t size) { return i * from / size; }
size_t End(size_t i, size_t from, size_t size) {
  return std::max(Begin(i + 1, from, size), Begin(i, from, size) + 1);
}

}  // namespace

void FitImage(py::array_t<uint8_t, py::array::c_style>& target,
              const py::array_t<uint8_t, py::array::c_style>& image) {
  if (target.ndim() != 3 || target.shape(2) != py::ssize_t{kChannels} ||
      image.ndim() != 3 || (image.shape(2) != 3 && image.shape(2) != 4) ||
      target.size() == 0 || image.size() == 0) {
    RaiseInvalid(
        "fit_image: expected uint8[height, width, 3] and "
        "uint8[rows, columns, 3 or 4], found others");
  }
  const auto height = static_cast<size_t>(target.shape(0));
  const auto width = static_cast<size_t>(target.shape(1));
  const auto rows = static_cast<size_t>(image.shape(0));
  const auto columns = static_cast<size_t>(image.shape(1));
  const auto channels = static_cast<size_t>(image.shape(2));
  const double scale =
      std::min(static_cast<double>(height) / static_cast<double>(rows),
               static_cast<double>(width) / static_cast<double>(columns));
  const auto scaled = [scale](size_t from, size_t most) {
    const double size = std::round(static_cast<double>(from) * scale);
    return std::clamp<size_t>(static_cast<size_t>(size), 1, most);
  };
  const size_t fit_rows = scaled(rows, height);
  const size_t fit_columns = scaled(columns, width);
  uint8_t* const out = target.mutable_data();
  std::memset(out, 0, height * width * kChannels);
  const size_t top = (height - fit_rows) / 2;
  const size_t left = (width - fit_columns) / 2;
  std::vector<uint32_t> sums(columns * channels);
  for (size_t y = 0; y < fit_rows; ++y) {
    const size_t first = Begin(y, rows, fit_rows);
    const size_t last = End(y, rows, fit_rows);
    std::ranges::fill(sums, 0u);
    for (size_t row = first; row < last; ++row) {
      const uint8_t* const from = image.data() + row * columns * channels;
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += from[i];
    }
    uint8_t* to = out + ((top + y) * width + left) * kChannels;
    for (size_t x = 0; x < fit_columns; ++x) {
      const size_t begin = Begin(x, columns, fit_columns);
      const size_t end = End(x, columns, fit_columns);
      const auto area = static_cast<uint64_t>((last - first) * (end - begin));
      for (size_t channel = 0; channel < kChannels; ++channel) {
        uint64_t sum = area / 2;
        for (size_t column = begin; column < end; ++column) {
          sum += sums[column * channels + channel];
        }
        *to++ = static_cast<uint8_t>(sum / area);
      }
    }
  }
}

}  // namespace tandem
