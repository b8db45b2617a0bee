// Canvas: draws filled shapes with smooth edges into a tile of a frame.
//
// Data flow: shapes -> AGG's rasteriser -> the tile's pixels.
// Ownership: it borrows the tile; the render thread makes one for each image.

#pragma once

#include <agg_path_storage.h>
#include <agg_rendering_buffer.h>

#include <cmath>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "engine_adapter/frame_source.h"

namespace tandem {

struct Point {
  double x = 0;
  double y = 0;
};

// Rotates about the origin, anticlockwise, and then moves to `to`.
class Turn {
 public:
  Turn(double angle, Point to)
      : cos_(std::cos(angle)), sin_(std::sin(angle)), to_(to) {}
  Point operator()(Point point) const {
    return {.x = to_.x + cos_ * point.x - sin_ * point.y,
            .y = to_.y + sin_ * point.x + cos_ * point.y};
  }

 private:
  double cos_;
  double sin_;
  Point to_;
};

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

inline constexpr Color kBlack = {};

// In units of the drawing. A task of Gymnasium: the pixels of Gymnasium's
// image.
struct CanvasSize {
  double width = 0;
  double height = 0;
};

// Coordinates are in units of the drawing, y upwards; an integer is the middle
// of a unit. The drawing is scaled to fit into the tile, and is centred in it.
// The tile is white at first. A shape with a coordinate that is not finite is
// omitted.
class Canvas {
 public:
  // Call it first. kUnsupported: this system has no drawings.
  static absl::Status Available();

  Canvas(const FrameTile& tile, CanvasSize size);

  // With a margin of half a unit: Gymnasium fills the pixels that an edge
  // touches. Two corners make a line.
  void Polygon(std::span<const Point> corners, Color color);
  void Circle(Point centre, double radius, Color color);
  // Fills any shape in black, without a margin.
  void FillBlack(std::span<const Point> corners);

 private:
  Point InTile(Point point) const;
  agg::path_storage Path(std::span<const Point> corners) const;
  template <typename Shape>
  void Fill(Shape& shape, Color color);

  agg::rendering_buffer pixels_;
  double scale_ = 1;   // the tile's pixels for one unit
  Point top_left_;     // of the drawing, in the tile's pixels
  double height_ = 0;  // in units
};

}  // namespace tandem
