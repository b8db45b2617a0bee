// PlotItem: plots the history of one of a tab's numbers a few times a second.
//
// Data flow: SampleHistory -> for each bucket a band from min to max, and a
// line through the means.
// Ownership: SidePanel.qml.
//
//   PlotItem { tab: view.tab; series: "return"; lineColor: "teal" }

#ifndef TANDEM_VIZ_VIEWER_PLOT_ITEM_H_
#define TANDEM_VIZ_VIEWER_PLOT_ITEM_H_

#include <QColor>
#include <QPointer>
#include <QQuickPaintedItem>
#include <QString>
#include <QTimer>

#include "viz/core/sample_history.h"
#include "viz/viewer/fast_lane_tab.h"

namespace tandem {

class PlotItem : public QQuickPaintedItem {
  Q_OBJECT
  Q_PROPERTY(tandem::FastLaneTab* tab READ tab WRITE SetTab NOTIFY tabChanged)
  // "reward", "return", "step rate" or "episode length"
  Q_PROPERTY(QString series MEMBER series_)
  Q_PROPERTY(QColor lineColor MEMBER line_color_ NOTIFY colorsChanged)
  Q_PROPERTY(QColor gridColor MEMBER grid_color_ NOTIFY colorsChanged)
  // Texts beside the curve, for its current values.
  Q_PROPERTY(QString lastText READ lastText NOTIFY refreshed)
  Q_PROPERTY(QString minText READ minText NOTIFY refreshed)
  Q_PROPERTY(QString maxText READ maxText NOTIFY refreshed)
  Q_PROPERTY(QString spanText READ spanText NOTIFY refreshed)

 public:
  explicit PlotItem(QQuickItem* parent = nullptr);

  FastLaneTab* tab() const { return tab_; }
  void SetTab(FastLaneTab* tab);

  QString lastText() const;
  QString minText() const;
  QString maxText() const;
  QString spanText() const;  // from the first sample to the last: "2 min"

  void paint(QPainter* painter) override;

 Q_SIGNALS:
  void tabChanged();
  void colorsChanged();
  void refreshed();

 private:
  void Refresh();
  // Returns nullptr if there is no history.
  const SampleHistory* History() const;

  QPointer<FastLaneTab> tab_;
  QString series_;
  QColor line_color_;
  QColor grid_color_;
  QTimer timer_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_PLOT_ITEM_H_
