// FrameMetrics: what a head-up display shows beside a frame.
//
// Data flow: the publisher -> FrameWriter -> the ring's header -> FrameReader.
//
//   writer.Publish(pixels, {.last_reward = 0.5}, "");

#ifndef TANDEM_TRANSPORT_FRAMES_FRAME_METRICS_H_
#define TANDEM_TRANSPORT_FRAMES_FRAME_METRICS_H_

namespace tandem {

// rolling_return: the mean of the latest episodes; step_rate_hz: steps of all
// environments a second.
struct FrameMetrics {
  double last_reward = 0;
  double rolling_return = 0;
  double step_rate_hz = 0;
  friend bool operator==(const FrameMetrics&, const FrameMetrics&) = default;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_FRAME_METRICS_H_
