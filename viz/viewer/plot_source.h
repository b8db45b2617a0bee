// PlotSource: the numbers that a PlotItem can plot.
//
// Data flow: a run's numbers -> History, by the name of a series -> PlotItem.
// Ownership: a QObject that a QML binding names; GUI thread.
//
//   PlotItem { source: view.tab; series: "return" }

#ifndef TANDEM_VIZ_VIEWER_PLOT_SOURCE_H_
#define TANDEM_VIZ_VIEWER_PLOT_SOURCE_H_

#include <QString>

#include "viz/core/sample_history.h"

namespace tandem {

class PlotSource {
 public:
  PlotSource() = default;
  PlotSource(const PlotSource&) = delete;
  PlotSource& operator=(const PlotSource&) = delete;
  virtual ~PlotSource() = default;

  // Of the series; valid until the source changes. nullptr: it has no sample,
  // or no such series.
  virtual const SampleHistory* History(const QString& series) const = 0;
  // The newest value, also one that is not finite, which a history omits.
  virtual double Newest(const QString& series) const = 0;
  // The distance from a history's first sample to its last: "2 min".
  virtual QString SpanText(const SampleHistory& history) const = 0;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_VIEWER_PLOT_SOURCE_H_
