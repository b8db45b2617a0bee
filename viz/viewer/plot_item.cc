#include "viz/viewer/plot_item.h"

#include <QPainter>
#include <QPolygonF>
#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr int kRefreshMs = 250;

QString Number(double value) {
  if (std::isnan(value)) return QStringLiteral("nan");
  const double size = std::abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) {
    return QString::number(value, 'g', 3);
  }
  return QString::number(value, 'f', size >= 1000 ? 0 : size >= 100 ? 1 : 2);
}

struct Extent {
  double least;
  double greatest;
};

Extent ExtentOf(const SampleHistory& history) {
  Extent extent = {history.buckets().front().min,
                   history.buckets().front().max};
  for (const SampleHistory::Bucket& bucket : history.buckets()) {
    extent.least = std::min(extent.least, bucket.min);
    extent.greatest = std::max(extent.greatest, bucket.max);
  }
  return extent;
}

}  // namespace

PlotItem::PlotItem(QQuickItem* parent) : QQuickPaintedItem(parent) {
  setAntialiasing(true);
  connect(&timer_, &QTimer::timeout, this, &PlotItem::Refresh);
  connect(this, &PlotItem::colorsChanged, this, [this] { update(); });
  timer_.start(kRefreshMs);
}

void PlotItem::SetSource(QObject* source) {
  if (source_ == source) return;
  source_ = source;
  Refresh();
  Q_EMIT sourceChanged();
}

const PlotSource* PlotItem::Source() const {
  return dynamic_cast<const PlotSource*>(source_.data());
}

void PlotItem::Refresh() {
  if (!isVisible()) return;
  update();
  Q_EMIT refreshed();
}

const SampleHistory* PlotItem::History() const {
  const PlotSource* const source = Source();
  return source == nullptr ? nullptr : source->History(series_);
}

QString PlotItem::lastText() const {
  const SampleHistory* history = History();
  if (history == nullptr) return QStringLiteral("–");
  // Shows nan and inf, too, which the curve omits.
  const double value = Source()->Newest(series_);
  return Number(std::isfinite(value) ? history->buckets().back().last : value);
}

QString PlotItem::minText() const {
  const SampleHistory* history = History();
  return history == nullptr ? QString() : Number(ExtentOf(*history).least);
}

QString PlotItem::maxText() const {
  const SampleHistory* history = History();
  return history == nullptr ? QString() : Number(ExtentOf(*history).greatest);
}

QString PlotItem::spanText() const {
  const SampleHistory* history = History();
  return history == nullptr ? QString() : Source()->SpanText(*history);
}

void PlotItem::paint(QPainter* painter) {
  constexpr double kMargin = 2;
  const double right = width() - kMargin;
  const double bottom = height() - kMargin;
  painter->setPen(QPen(grid_color_, 1));
  for (const double part : {0.0, 0.5, 1.0}) {
    const double y = std::round(kMargin + part * (bottom - kMargin)) - 0.5;
    painter->drawLine(QPointF(kMargin, y), QPointF(right, y));
  }
  const SampleHistory* history = History();
  if (history == nullptr) return;

  auto [least, greatest] = ExtentOf(*history);
  if (greatest - least < 1e-12 * std::max(1.0, std::abs(greatest))) {
    least -= 1;  // a constant value is in the middle
    greatest += 1;
  }
  const auto& buckets = history->buckets();
  const double begin = static_cast<double>(buckets.front().start_ns);
  const double span =
      std::max(1.0, static_cast<double>(buckets.back().start_ns) - begin);
  const auto x = [&](const SampleHistory::Bucket& bucket) {
    return kMargin + (static_cast<double>(bucket.start_ns) - begin) / span *
                         (right - kMargin);
  };
  // Halves first: the difference of two doubles may overflow.
  const auto y = [&](double value) {
    return bottom - (value / 2 - least / 2) / (greatest / 2 - least / 2) *
                        (bottom - kMargin);
  };
  QPolygonF band;
  QPolygonF line;
  for (const SampleHistory::Bucket& bucket : buckets) {
    band << QPointF(x(bucket), y(bucket.max));
    line << QPointF(x(bucket), y(bucket.mean()));
  }
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    band << QPointF(x(*bucket), y(bucket->min));
  }
  QColor faint = line_color_;
  faint.setAlphaF(0.28F);
  painter->setPen(QPen(faint, 1));
  painter->setBrush(faint);
  painter->drawPolygon(band);
  painter->setPen(QPen(line_color_, 1.6));
  painter->setBrush(Qt::NoBrush);
  painter->drawPolyline(line);
}

}  // namespace tandem
