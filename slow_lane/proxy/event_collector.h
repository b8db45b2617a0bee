// EventCollector: a worker's output as batches of numbered events.
//
// Data flow: LineTail -> EventLineParser -> EventBatch, with where in the
// output it begins and ends.
// Ownership: the proxy's, one thread. Its state is the Position, which the
// daemon stores with the rows: a proxy that has it goes on exactly there, and
// makes the same batches' events again with the same numbers.
//
//   auto collector = EventCollector::Open("stdout.jsonl", welcome.welcome(),
//                                         /*step_stride=*/1);
//   v1::EventBatch batch;
//   absl::StatusOr<bool> found = collector->Collect(&batch);
//   if (found.ok() && *found) Send(batch);
//
// Numbers: each stream (steps, episodes, lifecycle, malformed) from 1 on, in
// the output's order. A step is counted always, and sent if (its number - 1) is
// a multiple of step_stride. The other streams are never sampled.

#ifndef TANDEM_SLOW_LANE_PROXY_EVENT_COLLECTOR_H_
#define TANDEM_SLOW_LANE_PROXY_EVENT_COLLECTOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/event_line.h"
#include "slow_lane/proxy/line_tail.h"

namespace tandem::slow_lane {

class EventCollector {
 public:
  // Bytes of output in a batch; a longer line is alone in its own. A malformed
  // line counts kMalformedBytes more, for its record.
  static constexpr size_t kBatchBytes = size_t{256} << 10;
  static constexpr size_t kMalformedBytes = 512;
  // Bytes of a malformed line's record that show how it begins.
  static constexpr size_t kHeadBytes = 1024;

  // Fails as LineTail::Open. `step_stride` is at least 1.
  static absl::StatusOr<EventCollector> Open(const std::string& path,
                                             const v1::Position& position,
                                             uint64_t step_stride);
  // `tail` starts at position.offset().
  EventCollector(LineTail tail, const v1::Position& position,
                 uint64_t step_stride);

  // Fills the cleared `batch` with what comes next, all but run_id and
  // worker_id. False: there is no complete line yet; the batch is to be
  // ignored. A batch may have no events and still be worth sending: its end
  // says how many text lines and unsent steps were passed. Fails as
  // LineTail::Next; what was collected before the error comes first, as a
  // batch.
  absl::StatusOr<bool> Collect(v1::EventBatch* batch);

  // The writer is gone: the rest without a newline counts as a line too. An
  // event that only lacks its newline is taken.
  void Finish() { tail_.Finish(); }

  // The end of the last batch.
  const v1::Position& position() const { return position_; }

 private:
  // Adds one line to the batch, and returns how much of the batch's room it
  // took.
  size_t Add(const TailLine& line, v1::EventBatch* batch);
  void AddMalformed(const TailLine& line, absl::string_view reason,
                    v1::EventBatch* batch);

  LineTail tail_;
  EventLineParser parser_;
  v1::Position position_;
  uint64_t step_stride_;
  // Read, but too long for the batch that it was read for.
  std::optional<TailLine> next_line_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_EVENT_COLLECTOR_H_
