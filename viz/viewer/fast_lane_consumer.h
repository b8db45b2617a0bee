// FastLaneConsumer: reports a run's frames by Qt signals.
//
// Data flow: a timer -> FrameWatch::Poll -> frame_ready for each new frame,
// status_changed after a change of the state.
// Ownership: one RunTab, in the GUI thread.

#pragma once

#include <QImage>
#include <QObject>
#include <QString>
#include <QTimer>
#include <optional>

#include "absl/strings/string_view.h"
#include "viz/core/frame_watch.h"
#include "viz/core/freshness.h"

namespace tandem {

inline QString Text(absl::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

struct FastLaneFrameEvent {
  QImage image;  // a copy: RGB888 or RGBA8888
  QString hud_text;
  FrameMetadata metadata;
};

class FastLaneConsumer : public QObject {
  Q_OBJECT

 public:
  // Polls every 16 ms, or at each refresh of a faster display. A hidden run
  // needs only 20 polls a second, for its state.
  static constexpr int kPollMs = 16;
  static constexpr int kHiddenPollMs = 50;

  explicit FastLaneConsumer(const QString& run_id, QObject* parent = nullptr);

  void start();
  // Detaches from the ring; the writer then sees no viewer.
  void stop();

  // Sets the interval of polls; at most kHiddenPollMs.
  void SetPollMs(int period_ms);

  const FrameWatch& watch() const { return watch_; }
  QString status() const;  // FreshnessName of the state

 Q_SIGNALS:
  void frame_ready(const tandem::FastLaneFrameEvent& event);
  void status_changed(const QString& status);

 private:
  void Poll();

  FrameWatch watch_;
  QTimer timer_;
  std::optional<FreshnessState> state_;
};

}  // namespace tandem
