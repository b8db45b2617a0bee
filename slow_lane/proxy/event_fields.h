// EventFields: the known fields of one line's JSON object.
//
// Data flow: a line -> simdjson's DOM, which checks all of it -> for each field
// that some schema names its value, and its text as it stands in the line.
// Ownership: refers to the line and to the parser's tables: valid until either
// changes.
//
//   EventFields fields;
//   if (!fields.Parse(line, &parser, &reason)) return Malformed(reason);
//   if (const FieldValue* reward = fields.Find(Field::kReward)) ...

#ifndef TANDEM_SLOW_LANE_PROXY_EVENT_FIELDS_H_
#define TANDEM_SLOW_LANE_PROXY_EVENT_FIELDS_H_

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// All that the schemas name.
enum class Field : uint8_t {
  kAction,
  kActionJson,
  kAgentId,
  kBackend,
  kEpisode,
  kEpisodeIndex,
  kEpisodeSeed,
  kEvent,
  kEventType,
  kFrameRef,
  kMetadata,
  kMetadataJson,
  kObservation,
  kObservationJson,
  kPayload,
  kPayloadVersion,
  kPolicyLabel,
  kRender,
  kRenderHintJson,
  kRenderPayload,
  kReward,
  kSchemaVersion,
  kStep,
  kStepIndex,
  kSteps,
  kTerminated,
  kTimestamp,
  kTotalReward,
  kTruncated,
  kTsUnixNs,
  kType,
  kWorkerId,
  kCount,
};

// As in the JSON: "episode_index".
absl::string_view FieldName(Field field);

struct FieldValue {
  simdjson::dom::element value;
  absl::string_view text;  // from its first byte to its last
};

class EventFields {
 public:
  // False: not a JSON object within the limits that event_line.h names (the
  // depth is the parser's, less one), or with a known field twice; `reason`
  // says why. `line` has simdjson's padding behind it.
  bool Parse(absl::string_view line, simdjson::dom::parser* parser,
             std::string* reason);

  // Null if the field is missing or is null.
  const FieldValue* Find(Field field) const {
    return (present_ >> static_cast<int>(field) & 1) == 0
               ? nullptr
               : &values_[static_cast<size_t>(field)];
  }

 private:
  static_assert(static_cast<int>(Field::kCount) <= 64);

  uint64_t present_ = 0;  // a bit for each field
  std::array<FieldValue, static_cast<size_t>(Field::kCount)> values_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_EVENT_FIELDS_H_
