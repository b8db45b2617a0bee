// ImageGrid: the rows and columns of a frame's images.
//
// Data flow: the number of images -> rows and columns, filled row by row.
// Ownership: a value type.
//
//   const ImageGrid grid = ImageGrid::Of(5);  // 3 rows of 2

#pragma once

#include <cstdint>

namespace tandem {

struct ImageGrid {
  // rows = ceil(sqrt(count)), columns = ceil(count / rows), as in Python's
  // tile_frames; one row and column for a count of 0.
  static ImageGrid Of(uint32_t count) {
    ImageGrid grid;
    while (uint64_t{grid.rows} * grid.rows < count) ++grid.rows;
    if (count > 0) grid.columns = (count - 1) / grid.rows + 1;
    return grid;
  }

  friend bool operator==(const ImageGrid&, const ImageGrid&) = default;

  uint32_t rows = 1;
  uint32_t columns = 1;
};

}  // namespace tandem
