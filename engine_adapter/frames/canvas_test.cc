#include "engine_adapter/frames/canvas.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tandem {
namespace {

constexpr Color kBlue = {.red = 1, .green = 2, .blue = 250};
constexpr std::array<Point, 4> kSquare = {{{2, 1}, {2, 3}, {4, 3}, {4, 1}}};

// A tile with surrounding memory that the canvas must not write to.
class Sheet {
 public:
  Sheet(size_t width, size_t height)
      : width_(width), height_(height), bytes_((height + 2) * Stride()) {}

  FrameTile tile() {
    return {.first = &bytes_[Stride() + 3],
            .stride = Stride(),
            .row_bytes = 3 * width_,
            .rows = height_};
  }

  // Row 0 is the top row; row -1 is the memory before it.
  Color At(int x, int row) const {
    const std::byte* const pixel = &bytes_[(row + 1) * Stride() + 3 * (x + 1)];
    return {.red = static_cast<uint8_t>(pixel[0]),
            .green = static_cast<uint8_t>(pixel[1]),
            .blue = static_cast<uint8_t>(pixel[2])};
  }

 private:
  size_t Stride() const { return 3 * (width_ + 2); }

  size_t width_;
  size_t height_;
  std::vector<std::byte> bytes_;
};

bool Same(Color a, Color b) {
  return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

constexpr Color kWhite = {.red = 255, .green = 255, .blue = 255};

TEST(Canvas, FillsThePixelsThatAnEdgeTouches) {
  Sheet sheet(8, 6);
  Canvas canvas(sheet.tile(), {.width = 8, .height = 6});
  canvas.Polygon(kSquare, kBlue);
  for (int row = 0; row < 6; ++row) {
    for (int x = 0; x < 8; ++x) {
      const int y = 5 - row;
      const bool inside = x >= 2 && x <= 4 && y >= 1 && y <= 3;
      EXPECT_TRUE(Same(sheet.At(x, row), inside ? kBlue : kWhite))
          << x << " " << y;
    }
  }
}

TEST(Canvas, WritesNothingBeyondItsTile) {
  Sheet sheet(4, 3);
  Canvas canvas(sheet.tile(), {.width = 4, .height = 3});
  canvas.Polygon({{{-9, -9}, {-9, 9}, {9, 9}, {9, -9}}}, kBlue);
  canvas.Circle({4, 3}, 3, kBlue);
  for (int row = -1; row <= 3; ++row) {
    for (int x = -1; x <= 4; ++x) {
      const bool inside = x >= 0 && x < 4 && row >= 0 && row < 3;
      EXPECT_TRUE(Same(sheet.At(x, row), inside ? kBlue : kBlack));
    }
  }
}

TEST(Canvas, DrawsVisiblePartOfShapesBeyondIntegerRange) {
  Sheet sheet(4, 3);
  Canvas canvas(sheet.tile(), {.width = 4, .height = 3});
  constexpr double kFar = 1e12;
  canvas.Circle({kFar, kFar}, 5, kBlack);
  EXPECT_TRUE(Same(sheet.At(1, 1), kWhite));
  canvas.Polygon({{{-kFar, -kFar}, {-kFar, kFar}, {kFar, kFar}, {kFar, -kFar}}},
                 kBlue);
  EXPECT_TRUE(Same(sheet.At(1, 1), kBlue));
}

TEST(Canvas, SkipsShapeWithoutFinitePosition) {
  Sheet sheet(4, 3);
  Canvas canvas(sheet.tile(), {.width = 4, .height = 3});
  constexpr double kNowhere = std::numeric_limits<double>::quiet_NaN();
  canvas.Polygon({{{0, 0}, {0, 9}, {kNowhere, 9}}}, kBlue);
  canvas.Circle({kNowhere, 1}, 5, kBlue);
  EXPECT_TRUE(Same(sheet.At(0, 1), kWhite));
}

TEST(Canvas, FitsTheImageIntoTheMiddleOfATileOfAnotherShape) {
  Sheet sheet(12, 4);
  Canvas canvas(sheet.tile(), {.width = 2, .height = 2});
  canvas.Polygon({{{0, 0}, {0, 1}, {1, 1}, {1, 0}}}, kBlue);
  for (int x = 0; x < 12; ++x) {
    EXPECT_TRUE(Same(sheet.At(x, 2), x >= 4 && x < 8 ? kBlue : kWhite)) << x;
  }
}

TEST(Canvas, EdgesOfACircleAreSmooth) {
  Sheet sheet(20, 20);
  Canvas canvas(sheet.tile(), {.width = 20, .height = 20});
  canvas.Circle({9.5, 9.5}, 7, kBlack);
  EXPECT_TRUE(Same(sheet.At(10, 10), kBlack));
  EXPECT_TRUE(Same(sheet.At(1, 1), kWhite));
  int between = 0;
  for (int x = 0; x < 20; ++x) {
    const Color color = sheet.At(x, 5);
    if (color.red != 0 && color.red != 255) ++between;
  }
  EXPECT_GT(between, 0);
}

}  // namespace
}  // namespace tandem
