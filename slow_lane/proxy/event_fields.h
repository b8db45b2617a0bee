// EventFields: the known fields of one line's JSON object. DescribeJsonFault:
// the place and cause of a JSON error, for users.
//
// Data flow: a line -> simdjson's DOM, which checks all of it -> the value of
// each field that a schema names, and its text in the line.
// Ownership: refers to the line and to the parser's tables; valid until either
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

// Printable, at most a few hundred bytes. Allocates.
std::string DescribeJsonFault(absl::string_view line,
                              simdjson::error_code error, size_t max_depth);

// All fields of the schemas, in alphabetical order.
#define TANDEM_EVENT_FIELDS(FIELD)            \
  FIELD(kAction, "action")                    \
  FIELD(kActionJson, "action_json")           \
  FIELD(kAgentId, "agent_id")                 \
  FIELD(kBackend, "backend")                  \
  FIELD(kEpisode, "episode")                  \
  FIELD(kEpisodeIndex, "episode_index")       \
  FIELD(kEpisodeSeed, "episode_seed")         \
  FIELD(kEvent, "event")                      \
  FIELD(kEventType, "event_type")             \
  FIELD(kFrameRef, "frame_ref")               \
  FIELD(kMetadata, "metadata")                \
  FIELD(kMetadataJson, "metadata_json")       \
  FIELD(kObservation, "observation")          \
  FIELD(kObservationJson, "observation_json") \
  FIELD(kPayload, "payload")                  \
  FIELD(kPayloadVersion, "payload_version")   \
  FIELD(kPolicyLabel, "policy_label")         \
  FIELD(kRender, "render")                    \
  FIELD(kRenderHintJson, "render_hint_json")  \
  FIELD(kRenderPayload, "render_payload")     \
  FIELD(kReward, "reward")                    \
  FIELD(kSchemaVersion, "schema_version")     \
  FIELD(kStep, "step")                        \
  FIELD(kStepIndex, "step_index")             \
  FIELD(kSteps, "steps")                      \
  FIELD(kTerminated, "terminated")            \
  FIELD(kTimestamp, "timestamp")              \
  FIELD(kTotalReward, "total_reward")         \
  FIELD(kTruncated, "truncated")              \
  FIELD(kTsUnixNs, "ts_unix_ns")              \
  FIELD(kType, "type")                        \
  FIELD(kWorkerId, "worker_id")

enum class Field : uint8_t {
#define TANDEM_FIELD(constant, name) constant,
  TANDEM_EVENT_FIELDS(TANDEM_FIELD)
#undef TANDEM_FIELD
      kCount,
};

// Returns the name in JSON: "episode_index".
absl::string_view FieldName(Field field);

struct FieldValue {
  simdjson::dom::element value;
  absl::string_view text;  // from its first byte to its last
};

class EventFields {
 public:
  // Returns false if the line is not a JSON object within the limits of
  // event_line.h (the depth is the parser's, minus one), or has a known field
  // twice; `reason` has the cause. `line` must have simdjson's padding after
  // it.
  bool Parse(absl::string_view line, simdjson::dom::parser* parser,
             std::string* reason);

  // Returns nullptr if the field is missing or null.
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
