// EventLineParser: parses one line of a worker's output.
//
// Data flow: a line -> JSON, checked against version 1 of the schemas in
// schema/telemetry -> a message of an EventBatch, or the reason why it is
// malformed.
// Ownership: one thread uses it. It keeps its tables from line to line, so a
// line similar to earlier ones allocates only memory for its message.
//
// The kinds of lines:
//
//   first byte after blanks     content                              kind
//   none, or not '{'            anything                             kText
//   '{'                         "event_type" or "type": "step"       kStep
//   '{'                         "event_type" or "type": "episode"    kEpisode
//   '{'                         "event_type" or "type": "scalars"    kScalars
//   '{'                         no such; "event": a name             kLifecycle
//   '{'                         anything else                        kMalformed
//
// The schemas describe every field. In addition, a line's JSON
//   * is UTF-8, nested at most kMaxDepth deep (empty values do not count),
//   * has no known field twice in one object (other readers accept either),
//   * has integers within -2^63 .. 2^64 - 1, other numbers within a double,
//   * has no NaN and no Infinity, which JSON lacks, but which Python's json
//     prints by default. A reward or scalar may be the text "NaN", "Infinity"
//     or "-Infinity", as in protobuf's JSON. The values inside an observation
//     are unrestricted.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

enum class LineKind {
  kStep,
  kEpisode,
  kLifecycle,
  kScalars,
  kText,
  kMalformed
};

// Whether a line with this beginning should be an event.
bool IsMeantAsEvent(absl::string_view line);

class EventLineParser {
 public:
  static constexpr size_t kMaxDepth = 64;
  // Bytes after a line that must be readable, with any content.
  static constexpr size_t kPaddingBytes = 64;

  EventLineParser();
  ~EventLineParser();
  EventLineParser(EventLineParser&&) noexcept;
  EventLineParser& operator=(EventLineParser&&) noexcept;

  // Adds the event to `batch`, without run_id and seq_id. For kText and
  // kMalformed does not change `batch`. `line` has no newline, and
  // kPaddingBytes readable bytes after it. Makes no system call. Uses memory of
  // up to 14 times the line's size, and up to twice that if it has JSON in a
  // string. Releases the memory afterwards if it is over 1 MiB.
  LineKind Parse(absl::string_view line, v1::EventBatch* batch);

  // If the last line was malformed: the field, the expected and the found
  // value. Printable UTF-8, at most a few hundred bytes.
  const std::string& reason() const { return reason_; }

 private:
  struct Tables;

  LineKind ParseEvent(absl::string_view line, v1::EventBatch* batch);

  std::unique_ptr<Tables> tables_;
  std::string reason_;
};

}  // namespace tandem::slow_lane
