// An image that encodes its step number in every pixel, and runs that publish
// it, for tests that check a screen's content.
//
// Data flow: step -> pixels; a real process publishes them until it is killed.
// Its metadata: step, envs, episodes (one every ten steps), published_ns
// (CLOCK_MONOTONIC, just before the frame was published).
//
//   Publisher publisher({.run = "t"});   // a child process
//   publisher.Kill();

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "transport/frame_geometry.h"

namespace tandem {

// The value of one channel of pixel (x, y) at a step. Steps that are equal
// modulo 256 have equal images.
constexpr uint8_t PatternAt(uint64_t step, uint32_t x, uint32_t y,
                            uint32_t channel) {
  switch (channel) {
    case 0:
      return static_cast<uint8_t>(step + 7 * x);
    case 1:
      return static_cast<uint8_t>(3 * step + 11 * y);
    case 2:
      return static_cast<uint8_t>((13 * x) ^ (17 * y) ^ (5 * step));
    default:
      return static_cast<uint8_t>(x + y + step);
  }
}

void FillPattern(uint64_t step, const FrameGeometry& geometry,
                 std::span<std::byte> pixels);

struct PatternRun {
  enum class Kind {
    kSegment,  // A segment of Tandem.
    kForeign,  // A foreign writer's segment: no lock, no spare link.
    kRegion,   // An engine's region.
  };
  Kind kind = Kind::kSegment;
  std::string run;
  FrameGeometry geometry = {.width = 64,
                            .height = 48,
                            .channels = 3,
                            .capacity = 4,
                            .metadata_bytes = 256};
  double hz = 100;
  uint32_t tiles = 1;
  uint64_t still_after = 0;        // The last step published; 0: no limit.
  std::string error_text = {};     // In the metadata; "": none.
  bool invalidate_at_end = false;  // With still_after: marks the ring ended.
};

// Publishes until SIGTERM (it then cleans up) or SIGKILL. Returns an exit code.
int RunPattern(const PatternRun& run);

// RunPattern in a child process. The destructor kills and reaps it, and removes
// its files from /dev/shm.
class Publisher {
 public:
  explicit Publisher(const PatternRun& run);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher();

  // Each returns once its effect is complete.
  void Kill();
  void Stop();  // SIGSTOP
  void Continue();
  int Terminate();  // SIGTERM; returns the exit code.

  // The file of its frames.
  std::string path() const;

 private:
  void Reap();

  PatternRun run_;
  int pid_ = -1;
};

}  // namespace tandem
