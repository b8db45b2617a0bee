// FrameGrid: the position of each environment's image in the frame.
//
// Data flow: FrameOptions -> FrameGrid -> a FrameTile for each environment.
// Places without an environment are black.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/images/image_grid.h"
#include "engine_adapter/frame_source.h"

namespace tandem {

class FrameGrid {
 public:
  static FrameGrid Of(const FrameOptions& options) {
    FrameGrid grid;
    grid.width_ = options.width;
    grid.height_ = options.height;
    grid.count_ = static_cast<uint32_t>(options.envs.size());
    grid.places_ = ImageGrid::Of(grid.count_);
    return grid;
  }

  uint32_t rows() const { return places_.rows; }
  uint32_t columns() const { return places_.columns; }
  uint32_t FrameWidth() const { return columns() * width_; }  // pixels
  uint32_t FrameHeight() const { return rows() * height_; }
  uint64_t FrameBytes() const {
    return uint64_t{FrameWidth()} * FrameHeight() * kRgbBytes;
  }

  // `frame` has FrameBytes() bytes.
  FrameTile Tile(std::span<std::byte> frame, uint32_t place) const {
    const size_t stride = size_t{FrameWidth()} * kRgbBytes;
    const size_t top = size_t{place / columns()} * height_;
    const size_t left = size_t{place % columns()} * width_;
    return {.first = frame.data() + top * stride + left * kRgbBytes,
            .stride = stride,
            .row_bytes = size_t{width_} * kRgbBytes,
            .rows = height_};
  }

  // Makes the places after the last environment black.
  void BlackenRest(std::span<std::byte> frame) const {
    for (uint32_t place = count_; place < rows() * columns(); ++place) {
      const FrameTile tile = Tile(frame, place);
      for (size_t row = 0; row < tile.rows; ++row) {
        std::memset(tile.first + row * tile.stride, 0, tile.row_bytes);
      }
    }
  }

 private:
  uint32_t width_ = 0;  // of one image
  uint32_t height_ = 0;
  ImageGrid places_;
  uint32_t count_ = 0;
};

}  // namespace tandem
