#include "base/images/image_grid.h"

#include <gtest/gtest.h>

#include <utility>

namespace tandem {
namespace {

TEST(ImageGrid, IsAsSquareAsPossible) {
  const auto sides = [](uint32_t count) {
    const ImageGrid grid = ImageGrid::Of(count);
    return std::pair(grid.rows, grid.columns);
  };
  EXPECT_EQ(sides(0), std::pair(1U, 1U));
  EXPECT_EQ(sides(1), std::pair(1U, 1U));
  EXPECT_EQ(sides(2), std::pair(2U, 1U));
  EXPECT_EQ(sides(3), std::pair(2U, 2U));
  EXPECT_EQ(sides(4), std::pair(2U, 2U));
  EXPECT_EQ(sides(5), std::pair(3U, 2U));
  EXPECT_EQ(sides(7), std::pair(3U, 3U));
  EXPECT_EQ(sides(64), std::pair(8U, 8U));
}

}  // namespace
}  // namespace tandem
