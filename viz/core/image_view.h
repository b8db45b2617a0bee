// ImageView: where an image, or one tile of it, is drawn: fitted, zoomed or
// moved, its aspect ratio kept.
//
// Data flow: the area of the window, the image's size, tiles, and the user's
// moves -> a source rectangle (image pixels) and a target (area units).
// Ownership: one tab's view. Plain arithmetic; nothing allocates.
//
//   ImageView view;
//   view.SetArea(800, 600);
//   view.SetImage(640, 480, /*tiles=*/4);
//   view.Focus(2);                     // the third tile alone
//   view.ZoomAt(2, 400, 300);          // that point stays where it is
//   Draw(view.Source(), view.Target());

#ifndef TANDEM_VIZ_CORE_IMAGE_VIEW_H_
#define TANDEM_VIZ_CORE_IMAGE_VIEW_H_

#include <cstdint>

namespace tandem {

struct ViewRect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  friend bool operator==(const ViewRect&, const ViewRect&) = default;
};

// Where tile `index` of `tiles` lies in an image: rows = ceil(sqrt(tiles)),
// columns = ceil(tiles / rows), as tile_frames lays them. The whole image if
// there is no such tile, or if the image does not divide evenly.
ViewRect TileRect(uint32_t width, uint32_t height, uint32_t tiles,
                  uint32_t index);

// The tile under a point of the image, or -1: outside, or an empty place.
int TileAt(uint32_t width, uint32_t height, uint32_t tiles, double x, double y);

class ImageView {
 public:
  static constexpr int kGrid = -1;         // all tiles
  static constexpr double kMaxScale = 64;  // area units for an image pixel

  // Keep what the user sees: a fitted image stays fitted, a zoomed one keeps
  // its middle and scale.
  void SetArea(double width, double height);
  // A change of size or tiles goes back to the whole grid only if the focused
  // tile is no more, and fits.
  void SetImage(uint32_t width, uint32_t height, uint32_t tiles);

  // One tile, fitted; kGrid or a tile that isn't there: all.
  void Focus(int tile);
  int focus() const { return focus_; }
  uint32_t tiles() const { return tiles_; }

  void Fit();
  bool fitted() const { return fitted_; }
  // One unit for each image pixel, around the middle of the area.
  void ActualSize();
  // The point (x, y) of the area stays where it is.
  void ZoomAt(double factor, double x, double y);
  // The middle of the area stays where it is.
  void ZoomBy(double factor) {
    ZoomAt(factor, area_width_ / 2, area_height_ / 2);
  }
  // Moves the image; never beyond its own edges.
  void PanBy(double dx, double dy);

  double scale() const;
  ViewRect Source() const;  // image pixels
  ViewRect Target() const;  // where Source is drawn; empty without an image
  // The tile under a point of the area, or -1.
  int TileUnder(double x, double y) const;

 private:
  double FitScale() const;
  void Clamp();

  double area_width_ = 0;
  double area_height_ = 0;
  uint32_t width_ = 0;
  uint32_t height_ = 0;
  uint32_t tiles_ = 1;
  int focus_ = kGrid;
  bool fitted_ = true;
  double scale_ = 1;     // if not fitted
  double middle_x_ = 0;  // if not fitted: the point of Source() in the middle
  double middle_y_ = 0;  // of the area, in pixels from Source()'s corner
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_IMAGE_VIEW_H_
