#include "viz/core/image_view.h"

#include <algorithm>

namespace tandem {
namespace {

bool HasTiles(const TiledImage& image) {
  return image.tiles > 1 && image.grid.rows > 0 && image.grid.columns > 0 &&
         image.width % image.grid.columns == 0 &&
         image.height % image.grid.rows == 0;
}

}  // namespace

ViewRect TileRect(const TiledImage& image, uint32_t tile) {
  if (!HasTiles(image) || tile >= image.tiles) {
    return {0, 0, static_cast<double>(image.width),
            static_cast<double>(image.height)};
  }
  const uint32_t width = image.width / image.grid.columns;
  const uint32_t height = image.height / image.grid.rows;
  return {static_cast<double>(tile % image.grid.columns * width),
          static_cast<double>(tile / image.grid.columns * height),
          static_cast<double>(width), static_cast<double>(height)};
}

int TileAt(const TiledImage& image, double x, double y) {
  if (!(x >= 0 && y >= 0 && x < image.width && y < image.height)) return -1;
  if (!HasTiles(image)) return 0;
  const uint32_t column =
      static_cast<uint32_t>(x) / (image.width / image.grid.columns);
  const uint32_t row =
      static_cast<uint32_t>(y) / (image.height / image.grid.rows);
  const uint32_t tile = row * image.grid.columns + column;
  return tile < image.tiles ? static_cast<int>(tile) : -1;
}

void ImageView::SetArea(double width, double height) {
  area_width_ = std::max(0.0, width);
  area_height_ = std::max(0.0, height);
}

void ImageView::SetImage(const TiledImage& image) {
  if (image == image_) return;
  image_ = image;
  Focus(focus_);
}

void ImageView::Focus(int tile) {
  const bool there = tile >= 0 && static_cast<uint32_t>(tile) < image_.tiles &&
                     HasTiles(image_);
  focus_ = there ? tile : kGrid;
}

double ImageView::scale() const {
  const ViewRect source = Source();
  if (source.width <= 0 || source.height <= 0) return 1;
  const double fit =
      std::min(area_width_ / source.width, area_height_ / source.height);
  return fit > 0 ? fit : 1;
}

ViewRect ImageView::Source() const {
  // kGrid is no tile: the whole image.
  return TileRect(image_, static_cast<uint32_t>(focus_));
}

ViewRect ImageView::Target() const {
  const ViewRect source = Source();
  const double width = source.width * scale();
  const double height = source.height * scale();
  return {(area_width_ - width) / 2, (area_height_ - height) / 2, width,
          height};
}

int ImageView::TileUnder(double x, double y) const {
  const ViewRect source = Source();
  const ViewRect target = Target();
  const double in_x = (x - target.x) / scale();
  const double in_y = (y - target.y) / scale();
  if (!(in_x >= 0 && in_y >= 0 && in_x < source.width &&
        in_y < source.height)) {
    return -1;
  }
  return TileAt(image_, source.x + in_x, source.y + in_y);
}

}  // namespace tandem
