// FrameItem: shows a tab's image as a texture of the scene graph. A click shows
// one tile of it, the next click all.
//
// Data flow: RunTab::image -> QSGTexture -> QSGImageNode, drawn by a
// graphics card or by Qt's software renderer.
// Ownership: FastLaneView.qml. updatePaintNode runs while the GUI thread waits.

#pragma once

#include <QPointer>
#include <QQuickItem>

#include "viz/viewer/run_tab.h"

namespace tandem {

class FrameItem : public QQuickItem {
  Q_OBJECT
  Q_PROPERTY(tandem::RunTab* tab READ tab WRITE SetTab NOTIFY tabChanged)

 public:
  explicit FrameItem(QQuickItem* parent = nullptr);

  RunTab* tab() const { return tab_; }
  void SetTab(RunTab* tab);

 Q_SIGNALS:
  void tabChanged();

 protected:
  void geometryChange(const QRectF& now, const QRectF& before) override;
  void itemChange(ItemChange change, const ItemChangeData& data) override;
  QSGNode* updatePaintNode(QSGNode* old, UpdatePaintNodeData*) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  double PixelRatio() const;  // display pixels for one unit of the item
  void TellArea();
  void Moved();

  QPointer<RunTab> tab_;
  bool image_changed_ = true;
  bool has_mipmaps_ = false;  // whether the texture has mipmaps
};

}  // namespace tandem
