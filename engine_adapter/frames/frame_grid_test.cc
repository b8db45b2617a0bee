#include "engine_adapter/frames/frame_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "transport/base/picture_grid.h"

namespace tandem {
namespace {

FrameOptions Pictures(uint32_t count, uint32_t width = 3, uint32_t height = 2) {
  return {
      .width = width, .height = height, .envs = std::vector<uint32_t>(count)};
}

TEST(FrameGrid, IsAsSquareAsItCanBe) {
  const auto sides = [](uint32_t count) {
    const PictureGrid grid = PictureGrid::Of(count);
    return std::pair(grid.rows, grid.columns);
  };
  EXPECT_EQ(sides(1), std::pair(1U, 1U));
  EXPECT_EQ(sides(2), std::pair(2U, 1U));
  EXPECT_EQ(sides(3), std::pair(2U, 2U));
  EXPECT_EQ(sides(4), std::pair(2U, 2U));
  EXPECT_EQ(sides(5), std::pair(3U, 2U));
  EXPECT_EQ(sides(7), std::pair(3U, 3U));
  EXPECT_EQ(sides(64), std::pair(8U, 8U));
}

// A frame of pictures filled with their number, from 1; what no picture covers
// shows what was there.
std::vector<int> Painted(uint32_t count) {
  const FrameGrid grid = FrameGrid::Of(Pictures(count));
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
  for (size_t i = 0; i < frame.size(); i += FrameGrid::kChannels) {
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

TEST(FrameGrid, OnePictureIsTheFrame) {
  EXPECT_EQ(Painted(1), std::vector<int>(6, 1));
}

}  // namespace
}  // namespace tandem
