#include "viz/viewer/frame_item.h"

#include <QMouseEvent>
#include <QQuickWindow>
#include <QSGImageNode>
#include <QSGTexture>
#include <cmath>

namespace tandem {
namespace {

constexpr double kSharpFromScale = 2.5;  // pixels have sharp edges from here on

}  // namespace

FrameItem::FrameItem(QQuickItem* parent) : QQuickItem(parent) {
  setFlag(ItemHasContents);
  setAcceptedMouseButtons(Qt::LeftButton);
}

void FrameItem::SetTab(RunTab* tab) {
  if (tab_ == tab) return;
  if (tab_ != nullptr) tab_->disconnect(this);
  tab_ = tab;
  if (tab_ != nullptr) {
    connect(tab_, &RunTab::imageChanged, this, [this] {
      image_changed_ = true;
      update();
    });
    connect(tab_, &RunTab::viewChanged, this, [this] { update(); });
    TellArea();
  }
  image_changed_ = true;
  update();
  Q_EMIT tabChanged();
}

double FrameItem::PixelRatio() const {
  return window() != nullptr ? window()->effectiveDevicePixelRatio() : 1;
}

// The view's unit is a display pixel.
void FrameItem::TellArea() {
  if (tab_ == nullptr || width() <= 0 || height() <= 0) return;
  tab_->view().SetArea(width() * PixelRatio(), height() * PixelRatio());
  Moved();
}

void FrameItem::Moved() {
  tab_->ViewMoved();
  update();
}

void FrameItem::geometryChange(const QRectF& now, const QRectF& before) {
  QQuickItem::geometryChange(now, before);
  TellArea();
}

void FrameItem::itemChange(ItemChange change, const ItemChangeData& data) {
  QQuickItem::itemChange(change, data);
  if (change == ItemDevicePixelRatioHasChanged ||
      (change == ItemVisibleHasChanged && data.boolValue)) {
    TellArea();
  }
}

QSGNode* FrameItem::updatePaintNode(QSGNode* old, UpdatePaintNodeData*) {
  auto* node = static_cast<QSGImageNode*>(old);
  if (tab_ == nullptr || tab_->image().isNull()) {
    delete node;
    return nullptr;
  }
  if (node == nullptr) {
    node = window()->createImageNode();
    node->setOwnsTexture(true);
    image_changed_ = true;
  }
  const ImageView& view = tab_->view();
  const bool shrunk = view.scale() < 1;
  if (image_changed_ || (shrunk && !has_mipmaps_)) {
    // Ignores alpha: engines often leave meaningless values in it.
    QImage opaque = tab_->image();
    if (opaque.hasAlphaChannel()) {
      opaque.reinterpretAsFormat(QImage::Format_RGBX8888);
      opaque = opaque.convertToFormat(QImage::Format_RGB888);
    }
    QQuickWindow::CreateTextureOptions options = QQuickWindow::TextureIsOpaque;
    if (shrunk) options |= QQuickWindow::TextureHasMipmaps;
    QSGTexture* texture = window()->createTextureFromImage(opaque, options);
    node->setTexture(texture);
    image_changed_ = false;
    has_mipmaps_ = shrunk;
  }
  node->setMipmapFiltering(shrunk ? QSGTexture::Linear : QSGTexture::None);
  node->setFiltering(view.scale() >= kSharpFromScale || view.scale() == 1
                         ? QSGTexture::Nearest
                         : QSGTexture::Linear);
  const double ratio = PixelRatio();
  const ViewRect source = view.Source();
  const ViewRect target = view.Target();
  node->setSourceRect(source.x, source.y, source.width, source.height);
  // Whole display pixels, for sharp edges.
  const double left = std::round(target.x);
  const double top = std::round(target.y);
  const double right = std::round(target.x + target.width);
  const double bottom = std::round(target.y + target.height);
  node->setRect(left / ratio, top / ratio, (right - left) / ratio,
                (bottom - top) / ratio);
  return node;
}

// Accepts the press, so that the release comes.
void FrameItem::mousePressEvent(QMouseEvent*) {}

void FrameItem::mouseReleaseEvent(QMouseEvent* event) {
  if (tab_ == nullptr) return;
  ImageView& view = tab_->view();
  const double ratio = PixelRatio();
  const int tile = view.TileUnder(event->position().x() * ratio,
                                  event->position().y() * ratio);
  if (view.tiles() < 2 || tile < 0) return;
  view.Focus(view.focus() == ImageView::kGrid ? tile : ImageView::kGrid);
  Moved();
}

}  // namespace tandem
