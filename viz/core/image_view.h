// ImageView: computes where an image, or one tile of it, is drawn: as large as
// the area allows, in its middle, with its aspect ratio.
//
// Data flow: the window's area, the image's size and tiles, the focused tile ->
// a source rectangle (image pixels) and a target rectangle (area units).
// Ownership: one tab. Nothing allocates.

#pragma once

#include <cstdint>

#include "base/images/image_grid.h"

namespace tandem {

struct ViewRect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  friend bool operator==(const ViewRect&, const ViewRect&) = default;
};

// An image, and the tiles in it: the first ones of a grid.
struct TiledImage {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t tiles = 1;
  ImageGrid grid = {};
  friend bool operator==(const TiledImage&, const TiledImage&) = default;
};

// Returns the place of a tile in the image; the whole image if the tile does
// not exist, or if the image does not divide evenly.
ViewRect TileRect(const TiledImage& image, uint32_t tile);

// Returns the tile at a point of the image; -1: no tile.
int TileAt(const TiledImage& image, double x, double y);

class ImageView {
 public:
  static constexpr int kGrid = -1;  // all tiles

  void SetArea(double width, double height);
  // The focus stays if its tile still exists.
  void SetImage(const TiledImage& image);

  // Shows one tile; kGrid or a missing tile: all tiles.
  void Focus(int tile);
  int focus() const { return focus_; }
  uint32_t tiles() const { return image_.tiles; }

  double scale() const;     // area units for an image pixel
  ViewRect Source() const;  // image pixels
  ViewRect Target() const;  // the place of Source(); empty without an image
  // Returns the tile at a point of the area, or -1.
  int TileUnder(double x, double y) const;

 private:
  double area_width_ = 0;
  double area_height_ = 0;
  TiledImage image_;
  int focus_ = kGrid;
};

}  // namespace tandem
