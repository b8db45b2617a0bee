// ImageView: computes where an image, or one tile of it, is drawn. The image is
// fitted, zoomed or moved; its aspect ratio is constant.
//
// Data flow: the window's area, the image's size and tiles, the user's actions
// -> a source rectangle (image pixels) and a target rectangle (area units).
// Ownership: one tab. Nothing allocates.
//
//   ImageView view;
//   view.SetArea(800, 600);
//   view.SetImage(640, 480, /*tiles=*/4);
//   view.Focus(2);                     // shows only the third tile
//   view.ZoomAt(2, 400, 300);          // that point does not move
//   Draw(view.Source(), view.Target());

#ifndef TANDEM_VIZ_CORE_IMAGE_VIEW_H_
#define TANDEM_VIZ_CORE_IMAGE_VIEW_H_

#include <cstdint>

#include "transport/frames/image_grid.h"

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
  static constexpr int kGrid = -1;         // all tiles
  static constexpr double kMaxScale = 64;  // area units for an image pixel

  // A fitted image stays fitted. A zoomed image keeps its middle and scale.
  void SetArea(double width, double height);
  // A change of size or tiles fits the image. The focus stays if its tile still
  // exists.
  void SetImage(const TiledImage& image);

  // Shows one tile, fitted; kGrid or a missing tile: all tiles.
  void Focus(int tile);
  int focus() const { return focus_; }
  uint32_t tiles() const { return image_.tiles; }

  void Fit();
  bool fitted() const { return fitted_; }
  // Zooms to one area unit for each image pixel, about the area's middle.
  void ActualSize();
  // Zooms about the point (x, y) of the area.
  void ZoomAt(double factor, double x, double y);
  // Zooms about the middle of the area.
  void ZoomBy(double factor) {
    ZoomAt(factor, area_width_ / 2, area_height_ / 2);
  }
  // Moves the image, at most to its edges.
  void PanBy(double dx, double dy);

  double scale() const;
  ViewRect Source() const;  // image pixels
  ViewRect Target() const;  // the place of Source(); empty without an image
  // Returns the tile at a point of the area, or -1.
  int TileUnder(double x, double y) const;

 private:
  double FitScale() const;
  void Clamp();

  double area_width_ = 0;
  double area_height_ = 0;
  TiledImage image_;
  int focus_ = kGrid;
  bool fitted_ = true;
  // Used if not fitted. The middle is the point of Source() in the middle of
  // the area, in pixels from Source()'s corner.
  double scale_ = 1;
  double middle_x_ = 0;
  double middle_y_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_IMAGE_VIEW_H_
