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
  Clamp();
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
  Fit();
}

void ImageView::Fit() { fitted_ = true; }

void ImageView::ActualSize() { ZoomBy(1 / scale()); }

void ImageView::ZoomAt(double factor, double x, double y) {
  const ViewRect before = Target();
  if (before.width <= 0 || !(factor > 0)) return;
  const double old_scale = scale();
  const double least = std::min(1.0, FitScale());
  scale_ =
      std::clamp(old_scale * factor, least, std::max(kMaxScale, FitScale()));
  // The pixel at the point, minus the point's distance from the area's middle.
  middle_x_ = (x - before.x) / old_scale - (x - area_width_ / 2) / scale_;
  middle_y_ = (y - before.y) / old_scale - (y - area_height_ / 2) / scale_;
  fitted_ = false;
  Clamp();
}

void ImageView::PanBy(double dx, double dy) {
  if (fitted_) return;  // the whole image is visible
  middle_x_ -= dx / scale_;
  middle_y_ -= dy / scale_;
  Clamp();
}

double ImageView::FitScale() const {
  const ViewRect source = Source();
  if (source.width <= 0 || source.height <= 0) return 1;
  const double fit =
      std::min(area_width_ / source.width, area_height_ / source.height);
  return fit > 0 ? fit : 1;
}

double ImageView::scale() const { return fitted_ ? FitScale() : scale_; }

ViewRect ImageView::Source() const {
  // kGrid is no tile: the whole image.
  return TileRect(image_, static_cast<uint32_t>(focus_));
}

void ImageView::Clamp() {
  if (fitted_) return;
  const ViewRect source = Source();
  const auto clamp = [this](double middle, double size, double area) {
    const double half = area / scale_ / 2;
    // An image smaller than the area is centred.
    return size <= 2 * half ? size / 2 : std::clamp(middle, half, size - half);
  };
  middle_x_ = clamp(middle_x_, source.width, area_width_);
  middle_y_ = clamp(middle_y_, source.height, area_height_);
}

ViewRect ImageView::Target() const {
  const ViewRect source = Source();
  const double drawn = scale();
  const double middle_x = fitted_ ? source.width / 2 : middle_x_;
  const double middle_y = fitted_ ? source.height / 2 : middle_y_;
  return {area_width_ / 2 - middle_x * drawn,
          area_height_ / 2 - middle_y * drawn, source.width * drawn,
          source.height * drawn};
}

int ImageView::TileUnder(double x, double y) const {
  const ViewRect source = Source();
  const ViewRect target = Target();
  const double drawn = scale();
  const double in_x = (x - target.x) / drawn;
  const double in_y = (y - target.y) / drawn;
  if (!(in_x >= 0 && in_y >= 0 && in_x < source.width &&
        in_y < source.height)) {
    return -1;
  }
  return TileAt(image_, source.x + in_x, source.y + in_y);
}

}  // namespace tandem
