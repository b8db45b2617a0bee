// EventCollector: converts a worker's output to batches of numbered events.
//
// Data flow: LineTail -> EventLineParser -> EventBatch, with its begin and end
// in the output.
// Ownership: the proxy owns it; one thread uses it. Its state is the Position,
// which the daemon stores with the rows. A proxy with this position continues
// there, and makes the same events with the same numbers again.
//
// Numbers: each stream (steps, episodes, lifecycle, malformed, scalars) has
// numbers from 1, in the order of the output. Every step is counted; a step is
// sent if its number less 1 is a multiple of step_stride. Other streams are
// never sampled.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/event_line.h"
#include "slow_lane/proxy/line_tail.h"

namespace tandem::slow_lane {

class EventCollector {
 public:
  // Bytes of output in a batch; a longer line has its own batch. A malformed
  // line counts kMalformedBytes more, for its record.
  static constexpr size_t kBatchBytes = size_t{256} << 10;
  static constexpr size_t kMalformedBytes = 512;
  // Bytes of a malformed line's beginning in its record.
  static constexpr size_t kHeadBytes = 1024;

  // Errors: as LineTail::Open. `step_stride` is at least 1.
  static absl::StatusOr<EventCollector> Open(const std::string& path,
                                             const v1::Position& position,
                                             uint64_t step_stride);
  // `tail` begins at position.offset().
  EventCollector(LineTail tail, const v1::Position& position,
                 uint64_t step_stride);

  // Fills the cleared `batch` with the next events, without run_id and
  // worker_id. Returns false if there is no complete line yet; the caller then
  // ignores the batch. A batch without events may still be useful: its end
  // counts text lines and unsent steps. Errors: as LineTail::Next; events
  // collected before the error are returned first, as a batch.
  absl::StatusOr<bool> Collect(v1::EventBatch* batch);

  // The writer has ended: a rest without a newline now counts as a line. If it
  // is a complete event, it is accepted.
  void Finish() { tail_.Finish(); }

  // The end of the last batch.
  const v1::Position& position() const { return position_; }

 private:
  // Adds one line to the batch, and returns the used part of the batch's room.
  size_t Add(const TailLine& line, v1::EventBatch* batch);

  LineTail tail_;
  EventLineParser parser_;
  v1::Position position_;
  uint64_t step_stride_;
  // A line that was too long for the batch for which it was read.
  std::optional<TailLine> next_line_;
};

}  // namespace tandem::slow_lane
