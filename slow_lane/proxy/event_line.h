// EventLineParser: what one line that a worker printed says.
//
// Data flow: a line -> JSON, checked against version 1 of the schemas in
// schema/telemetry -> a message of an EventBatch, or a reason why not.
// Ownership: one thread's. Keeps its tables from line to line, so that a line
// like those before allocates nothing but what its message holds.
//
//   EventLineParser parser;
//   switch (parser.Parse(line, &batch)) {  // adds to the batch
//     case LineKind::kStep: batch.mutable_steps()->rbegin()->set_seq_id(7); ...
//     case LineKind::kMalformed: Keep(line, parser.reason());
//   }
//
// What a line is:
//
//   its first byte but blanks   what it holds                        kind
//   none, or not '{'            anything                             kText
//   '{'                         "event_type" or "type": "step"       kStep
//   '{'                         "event_type" or "type": "episode"    kEpisode
//   '{'                         no such; "event": a name             kLifecycle
//   '{'                         anything else                        kMalformed
//
// The schemas describe every field. Beyond what a schema can say, a line's JSON
//   * is UTF-8, nested at most kMaxDepth deep (what is empty does not count),
//   * has no known field twice in one object (other readers take either),
//   * has integers within -2^63 .. 2^64 - 1, other numbers within a double,
//   * has no NaN and no Infinity, which Python's json prints by default: JSON
//     lacks them. A reward may be the text "NaN", "Infinity" or "-Infinity", as
//     in protobuf's JSON; anything inside an observation may be what its
//     readers agree on.

#ifndef TANDEM_SLOW_LANE_PROXY_EVENT_LINE_H_
#define TANDEM_SLOW_LANE_PROXY_EVENT_LINE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

enum class LineKind { kStep, kEpisode, kLifecycle, kText, kMalformed };

// Whether a line that begins so is meant as an event.
bool IsMeantAsEvent(absl::string_view line);

class EventLineParser {
 public:
  static constexpr size_t kMaxDepth = 64;
  // Bytes behind a line that must be readable, whatever they hold.
  static constexpr size_t kPaddingBytes = 64;

  EventLineParser();
  ~EventLineParser();
  EventLineParser(EventLineParser&&) noexcept;
  EventLineParser& operator=(EventLineParser&&) noexcept;

  // Adds the event to `batch`, without run_id and seq_id; for kText and
  // kMalformed leaves it as it was. `line` has no newline, and kPaddingBytes
  // readable bytes behind it. Makes no system call. A line takes up to 14 times
  // its size in memory, and up to twice that if it holds JSON in a string;
  // given back afterwards if it is over 1 MiB.
  LineKind Parse(absl::string_view line, v1::EventBatch* batch);

  // Of the last line, if it was malformed: names the field, what was expected,
  // what was found. Printable UTF-8, at most a few hundred bytes.
  const std::string& reason() const { return reason_; }

 private:
  struct Tables;

  LineKind ParseEvent(absl::string_view line, v1::EventBatch* batch);

  std::unique_ptr<Tables> tables_;
  std::string reason_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_EVENT_LINE_H_
