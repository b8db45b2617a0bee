#include "viz/viewer/fast_lane_consumer.h"

#include <algorithm>

#include "base/clock.h"
#include "viz/core/quantities.h"

namespace tandem {
namespace {

// Returns a copy, because the next frame reuses the frame's buffer. Alpha is
// kept for saved images; the view draws the image opaque.
QImage ImageOf(const Frame& frame) {
  const QImage::Format format =
      frame.channels == 4 ? QImage::Format_RGBA8888 : QImage::Format_RGB888;
  return QImage(reinterpret_cast<const uchar*>(frame.pixels.data()),
                static_cast<int>(frame.width), static_cast<int>(frame.height),
                static_cast<qsizetype>(frame.width) * frame.channels, format)
      .copy();
}

}  // namespace

FastLaneConsumer::FastLaneConsumer(const QString& run_id, QObject* parent)
    : QObject(parent), watch_(run_id.toStdString()) {
  timer_.setTimerType(Qt::PreciseTimer);
  timer_.setInterval(kPollMs);
  connect(&timer_, &QTimer::timeout, this, &FastLaneConsumer::Poll);
}

void FastLaneConsumer::start() { timer_.start(); }

void FastLaneConsumer::stop() {
  timer_.stop();
  watch_.Detach();
}

void FastLaneConsumer::SetPollMs(int period_ms) {
  period_ms = std::clamp(period_ms, 1, kHiddenPollMs);
  if (timer_.interval() != period_ms) timer_.setInterval(period_ms);
}

QString FastLaneConsumer::status() const {
  return Text(FreshnessName(watch_.StateAt(MonotonicNanos())));
}

void FastLaneConsumer::Poll() {
  const int64_t now_ns = MonotonicNanos();
  const bool is_new = watch_.Poll(now_ns);
  // Emits the state before the frame: the view reads it when it shows the
  // frame.
  if (const FreshnessState state = watch_.StateAt(now_ns); state_ != state) {
    state_ = state;
    Q_EMIT status_changed(Text(FreshnessName(state)));
  }
  if (!is_new) return;
  const Frame& frame = watch_.frame();
  Q_EMIT frame_ready({.image = ImageOf(frame),
                      .hud_text = Text(HudText(frame.metrics.last_reward,
                                               frame.metrics.rolling_return,
                                               frame.metrics.step_rate_hz)),
                      .metadata = watch_.metadata()});
}

}  // namespace tandem
