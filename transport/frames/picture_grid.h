// PictureGrid: how pictures stand beside and below one another in a frame.
//
// Data flow: how many there are -> rows and columns, filled row by row.
// Ownership: a value.
//
//   const PictureGrid grid = PictureGrid::Of(5);  // 3 rows of 2

#ifndef TANDEM_TRANSPORT_FRAMES_PICTURE_GRID_H_
#define TANDEM_TRANSPORT_FRAMES_PICTURE_GRID_H_

#include <cstdint>

namespace tandem {

struct PictureGrid {
  // rows = ceil(sqrt(count)), columns = ceil(count / rows), as Python's
  // tile_frames has them; of nothing, one place.
  static PictureGrid Of(uint32_t count) {
    PictureGrid grid;
    while (uint64_t{grid.rows} * grid.rows < count) ++grid.rows;
    if (count > 0) grid.columns = (count - 1) / grid.rows + 1;
    return grid;
  }

  uint32_t rows = 1;
  uint32_t columns = 1;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_PICTURE_GRID_H_
