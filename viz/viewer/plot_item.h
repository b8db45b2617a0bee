// PlotItem: plots the history of one of a run's numbers a few times a second.
//
// Data flow: SampleHistory -> for each bucket a band from min to max, and a
// line through the means.
// Ownership: Course.qml.
//
//   PlotItem { source: view.tab; series: "return"; lineColor: "teal" }

#ifndef TANDEM_VIZ_VIEWER_PLOT_ITEM_H_
#define TANDEM_VIZ_VIEWER_PLOT_ITEM_H_

#include <QColor>
#include <QObject>
#include <QPointer>
#include <QQuickPaintedItem>
#include <QString>
#include <QTimer>

#include "viz/core/sample_history.h"
#include "viz/viewer/plot_source.h"

namespace tandem {

class PlotItem : public QQuickPaintedItem {
  Q_OBJECT
  // A PlotSource
  Q_PROPERTY(QObject* source READ source WRITE SetSource NOTIFY sourceChanged)
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

  QObject* source() const { return source_; }
  void SetSource(QObject* source);

  QString lastText() const;
  QString minText() const;
  QString maxText() const;
  QString spanText() const;  // PlotSource::SpanText

  void paint(QPainter* painter) override;

 Q_SIGNALS:
  void sourceChanged();
  void colorsChanged();
  void refreshed();

 private:
  void Refresh();
  const PlotSource* Source() const;  // nullptr: none
  // Returns nullptr if there is no history.
  const SampleHistory* History() const;

  QPointer<QObject> source_;
  QString series_;
  QColor line_color_;
  QColor grid_color_;
  QTimer timer_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_PLOT_ITEM_H_
