#include "viz/testing/pattern_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

constexpr double kEdge = 0.02;  // In image pixels.

bool NearEdge(double value) {
  const double part = value - std::floor(value);
  return part < kEdge || part > 1 - kEdge;
}

QRgb Expected(uint8_t step, uint32_t x, uint32_t y) {
  return qRgb(PatternAt(step, x, y, 0), PatternAt(step, x, y, 1),
              PatternAt(step, x, y, 2));
}

}  // namespace

PatternSeen CheckPattern(const QImage& screen, const QRect& area,
                         const FrameGeometry& geometry,
                         const ViewRect& source) {
  PatternSeen seen;
  if (!screen.rect().contains(area)) {
    seen.wrong =
        absl::StrFormat("a screen of %d x %d", screen.width(), screen.height());
    return seen;
  }
  const double scale =
      std::min(area.width() / source.width, area.height() / source.height);
  const double middle_x = area.width() / 2.0;
  const double middle_y = area.height() / 2.0;
  const int left =
      static_cast<int>(std::round(middle_x - source.width / 2 * scale));
  const int right =
      static_cast<int>(std::round(middle_x + source.width / 2 * scale));
  const int top =
      static_cast<int>(std::round(middle_y - source.height / 2 * scale));
  const int bottom =
      static_cast<int>(std::round(middle_y + source.height / 2 * scale));
  const auto pixel = [&](int x, int y) {
    return screen.pixel(area.x() + x, area.y() + y) & 0xffffff;
  };
  // The step follows from the first pixel's red channel.
  seen.step = static_cast<uint8_t>(
      qRed(pixel(left, top)) - PatternAt(0, static_cast<uint32_t>(source.x),
                                         static_cast<uint32_t>(source.y), 0));
  const QRgb beside = pixel(0, 0);
  for (int y = 0; y < area.height(); ++y) {
    for (int x = 0; x < area.width(); ++x) {
      QRgb expected = beside;
      if (x >= left && x < right && y >= top && y < bottom) {
        const double in_x =
            source.x + (x + 0.5 - left) * source.width / (right - left);
        const double in_y =
            source.y + (y + 0.5 - top) * source.height / (bottom - top);
        if (NearEdge(in_x) || NearEdge(in_y)) continue;
        expected = Expected(seen.step, static_cast<uint32_t>(in_x),
                            static_cast<uint32_t>(in_y)) &
                   0xffffff;
      }
      ++seen.checked;
      if (pixel(x, y) == expected) continue;
      seen.wrong = absl::StrFormat(
          "at (%d, %d) of %d x %d, step %d mod 256 of %d x %d: expected %06x, "
          "found %06x",
          x, y, area.width(), area.height(), seen.step, geometry.width,
          geometry.height, expected, pixel(x, y));
      return seen;
    }
  }
  return seen;
}

}  // namespace tandem
