#include "engine_adapter/frames/canvas.h"

#include <agg_conv_stroke.h>
#include <agg_pixfmt_rgb.h>
#include <agg_rasterizer_scanline_aa.h>
#include <agg_renderer_base.h>
#include <agg_renderer_scanline.h>
#include <agg_scanline_u.h>

#include <algorithm>
#include <array>
#include <numbers>

namespace tandem {
namespace {

using Pixels = agg::pixfmt_rgb24;
using Renderer = agg::renderer_base<Pixels>;

constexpr double kMargin = 0.5;
constexpr int kCircleCorners = 64;

uint32_t Width(const FrameTile& tile) {
  return static_cast<uint32_t>(tile.row_bytes / kRgbBytes);
}

}  // namespace

absl::Status Canvas::Available() { return absl::OkStatus(); }

Canvas::Canvas(const FrameTile& tile, CanvasSize size)
    : pixels_(reinterpret_cast<agg::int8u*>(tile.first), Width(tile),
              static_cast<uint32_t>(tile.rows), static_cast<int>(tile.stride)),
      scale_(std::min(Width(tile) / size.width,
                      static_cast<double>(tile.rows) / size.height)),
      top_left_{(Width(tile) - scale_ * size.width) / 2,
                (static_cast<double>(tile.rows) - scale_ * size.height) / 2},
      height_(size.height) {
  Pixels format(pixels_);
  Renderer(format).clear(agg::rgba8(255, 255, 255));
}

void Canvas::Polygon(std::span<const Point> corners, Color color) {
  agg::path_storage path = Path(corners);
  Fill(path, color);
  agg::conv_stroke<agg::path_storage> margin(path);
  margin.width(2 * kMargin * scale_);
  Fill(margin, color);
}

void Canvas::Circle(Point centre, double radius, Color color) {
  std::array<Point, kCircleCorners> corners;
  for (int i = 0; i < kCircleCorners; ++i) {
    const Turn turn(2 * std::numbers::pi * i / kCircleCorners, centre);
    corners[i] = turn({radius + kMargin, 0});
  }
  agg::path_storage path = Path(corners);
  Fill(path, color);
}

void Canvas::FillBlack(std::span<const Point> corners) {
  agg::path_storage path = Path(corners);
  Fill(path, kBlack);
}

Point Canvas::InTile(Point point) const {
  return {.x = top_left_.x + (point.x + 0.5) * scale_,
          .y = top_left_.y + (height_ - (point.y + 0.5)) * scale_};
}

agg::path_storage Canvas::Path(std::span<const Point> corners) const {
  agg::path_storage path;
  for (const Point corner : corners) {
    const Point at = InTile(corner);
    if (!std::isfinite(at.x) || !std::isfinite(at.y)) return {};
    if (path.total_vertices() == 0) {
      path.move_to(at.x, at.y);
    } else {
      path.line_to(at.x, at.y);
    }
  }
  path.close_polygon();
  return path;
}

template <typename Shape>
void Canvas::Fill(Shape& shape, Color color) {
  Pixels format(pixels_);
  Renderer renderer(format);
  // Clips before it rounds: coordinates may be far outside the image.
  agg::rasterizer_scanline_aa<agg::rasterizer_sl_clip_dbl> rasterizer;
  rasterizer.clip_box(0, 0, pixels_.width(), pixels_.height());
  rasterizer.add_path(shape);
  agg::scanline_u8 scanline;
  agg::render_scanlines_aa_solid(
      rasterizer, scanline, renderer,
      agg::rgba8(color.red, color.green, color.blue));
}

}  // namespace tandem
