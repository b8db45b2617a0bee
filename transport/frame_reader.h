// FrameReader: copies the newest complete frame out of a FLAN ring.
//
// Data flow: head -> its slot -> a copy -> a check: complete, or overwritten
// during the copy, and copied again.
// Ownership: the caller owns the ring's memory, which may be mapped read-only,
// and which must outlive the reader. Any number of readers read one ring; they
// write nothing into it.
//
//   absl::StatusOr<FrameReader> reader = FrameReader::Attach(ring);
//   Frame frame;  // its buffers are reused
//   if (reader->Next(&frame) == FrameReader::Found::kFrame) Show(frame);
//
// The ring's content is untrusted. Attach checks the geometry once; the reader
// keeps it and computes all addresses from it, so it never reads outside the
// ring. Each read compares the kept header with the ring's header. MOSAIC's
// writers rewrite the entire header for each frame, byte by byte, after zeroing
// it. So an invalid header first counts as no news, and as broken after
// kFrameGraceNs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/grace_period.h"
#include "schema/layout/flan.h"
#include "transport/frame_geometry.h"

namespace tandem {

// Longer than the time for which the scheduler of a busy machine suspends a
// writer between two bytes (decision 68).
inline constexpr int64_t kFrameGraceNs = 1'000'000'000;

struct Frame {
  uint64_t number = 0;  // from 1; the writer's head at publication
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;
  // width * height * channels; the top row first, pixels R, G, B (A). Zero from
  // frame_len on.
  std::vector<std::byte> pixels;
  uint64_t frame_len = 0;  // bytes written; may be fewer than a frame
  std::string metadata;    // should be JSON; unchecked
  FrameMetrics metrics;    // of this frame, or of the next
};

// Not thread-safe. No call blocks or makes a system call. A read allocates only
// to enlarge the Frame's buffers, up to payload_size bytes, which is less than
// the ring. A moved-from reader may only be assigned to or destroyed.
class FrameReader {
 public:
  // Checks the header of `ring`, which is 8-byte aligned. Yields the processor
  // a few times while the header is invalid. kNotReady: not a ring yet; the
  // caller may try again. kLayoutMismatch: not a ring of this kind that this
  // version can read, permanently.
  static absl::StatusOr<FrameReader> Attach(
      std::span<const std::byte> ring, int64_t grace_ns = kFrameGraceNs,
      FrameKind kind = FrameKind::kImages);

  FrameReader(FrameReader&&) = default;
  FrameReader& operator=(FrameReader&&) = default;

  enum class [[nodiscard]] Found{
      kFrame,
      kNothing,      // no frame (for Next: no newer one), or the writer
                     // has overwritten each copy; the caller may try again
      kInvalidated,  // the writer has left; no frame will follow
      kBroken,       // the ring is corrupt; attach again
  };

  // Copies the newest complete frame; returns each frame once. kInvalidated
  // after the writer's last frame was returned. `into` is valid only with
  // kFrame.
  Found Next(Frame* into);

  // Copies the newest complete frame; may return a frame repeatedly, also after
  // the writer has left. Never returns kInvalidated.
  Found Newest(Frame* into);

  // As Newest and Next, but copies the pixels into `pixels`, as far as they
  // fit; into->pixels does not change.
  Found NewestTo(std::span<std::byte> pixels, Frame* into);
  Found NextTo(std::span<std::byte> pixels, Frame* into);

  // The number of frames that Next has skipped.
  uint64_t dropped() const { return dropped_; }

  bool Invalidated() const;
  // The writer's current head, the number of published frames; may be 0 for an
  // instant.
  uint64_t Head() const;
  FrameMetrics Metrics() const { return MetricsOf(*header()); }
  const FrameGeometry& geometry() const { return geometry_; }

 private:
  FrameReader(std::span<const std::byte> ring, const FrameGeometry& geometry,
              int64_t grace_ns)
      : ring_(ring),
        geometry_(geometry),
        kept_(PlanFrameRing(geometry).value()),  // checked before
        header_grace_(grace_ns),
        head_grace_(grace_ns) {}

  const FlanHeader* header() const {
    return reinterpret_cast<const FlanHeader*>(ring_.data());
  }
  bool HeaderIsOurs() const;
  Found Read(uint64_t beyond, std::span<std::byte> pixels, Frame* into);
  enum class Copied { kWhole, kTorn, kSenseless };
  Copied CopyOut(uint64_t number, std::span<std::byte> pixels, Frame* into);

  std::span<const std::byte> ring_;
  FrameGeometry geometry_;
  FlanHeader kept_;           // the expected constant header
  GracePeriod header_grace_;  // the header differs from kept_
  GracePeriod head_grace_;    // head is below seen_
  uint64_t seen_ = 0;         // newest frame of any read
  uint64_t delivered_ = 0;    // newest frame of Next
  uint64_t dropped_ = 0;
};

}  // namespace tandem
