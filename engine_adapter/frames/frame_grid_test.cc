#include "engine_adapter/frames/frame_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine_adapter/frame_source.h"

namespace tandem {
namespace {

FrameOptions Images(uint32_t count, uint32_t width = 3, uint32_t height = 2) {
  return {
      .width = width, .height = height, .envs = std::vector<uint32_t>(count)};
}

// Returns a frame whose images are filled with their number, from 1; a byte
// outside all images keeps its value.
std::vector<int> Painted(uint32_t count) {
  const FrameGrid grid = FrameGrid::Of(Images(count));
  std::vector<std::byte> frame(grid.FrameBytes(), std::byte{99});
  for (uint32_t place = 0; place < count; ++place) {
    const FrameTile tile = grid.Tile(frame, place);
    for (size_t row = 0; row < tile.rows; ++row) {
      std::fill_n(tile.first + row * tile.stride, tile.row_bytes,
                  static_cast<std::byte>(place + 1));
    }
  }
  grid.BlackenRest(frame);
  std::vector<int> pixels;
  for (size_t i = 0; i < frame.size(); i += kRgbBytes) {
    pixels.push_back(std::to_integer<int>(frame[i]));
  }
  return pixels;
}

TEST(FrameGrid, FillsRowByRowAndBlackensTheRest) {
  EXPECT_EQ(Painted(3), (std::vector<int>{1, 1, 1, 2, 2, 2,  //
                                          1, 1, 1, 2, 2, 2,  //
                                          3, 3, 3, 0, 0, 0,  //
                                          3, 3, 3, 0, 0, 0}));
}

TEST(FrameGrid, OneImageIsTheFrame) {
  EXPECT_EQ(Painted(1), std::vector<int>(6, 1));
}

}  // namespace
}  // namespace tandem
