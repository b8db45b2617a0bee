// LineRules: which fields of a line become which fields of an event's message.
// EventFields: the known fields of one line. DescribeJsonFault: the place and
// cause of a JSON error, for users.
//
// Data flow: the messages' descriptors -> LineRules; a line -> simdjson's DOM,
// which checks all of it -> the value of each known field, and its text in the
// line.
// Ownership: LineRules is a constant of the process. EventFields refers to the
// line and to the parser's tables; valid until either changes.
//
// A field has its message's name in a line, except those in kOtherNames.

#pragma once

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace tandem::slow_lane {

// Printable, at most a few hundred bytes. Allocates.
std::string DescribeJsonFault(absl::string_view line,
                              simdjson::error_code error, size_t max_depth);

// The source of one field of a message.
struct LineRule {
  enum class Kind {
    kU32,
    kU64,
    kReward,
    kFlag,
    kText,
    kJson,
    kObject,
    kTime,
    kNumbers
  };

  const google::protobuf::FieldDescriptor* to;
  Kind kind;
  std::vector<uint8_t> names;  // the first one in the line counts
  // A bit for each name, and of episode_index for the metadata.
  uint64_t mask = 0;
  bool required = false;
};

class LineRules {
 public:
  static const LineRules& Get();

  // In the order of the message's fields.
  const std::vector<LineRule>& Of(
      const google::protobuf::Descriptor& event) const {
    return rules_.at(&event);
  }
  // All known names, sorted; at most 64.
  const std::vector<std::string>& names() const { return names_; }
  // Returns names().size() for a name that no rule has.
  size_t Find(absl::string_view name) const;

 private:
  static constexpr size_t kSlots = 256;

  LineRules();
  size_t SlotOf(absl::string_view name) const;

  absl::flat_hash_map<const google::protobuf::Descriptor*,
                      std::vector<LineRule>>
      rules_;
  std::vector<std::string> names_;
  // A perfect hash table of names_: no two have one slot.
  std::array<uint8_t, kSlots> slots_;
  size_t factor_ = 0;
};

struct FieldValue {
  simdjson::dom::element value;
  absl::string_view text;  // from its first byte to its last
};

class EventFields {
 public:
  static constexpr size_t kMostNames = 64;

  // Returns false if the line is not a JSON object within the limits of
  // event_line.h (the depth is the parser's, minus one), or has a known field
  // twice; `reason` has the cause. `line` must have simdjson's padding after
  // it.
  bool Parse(absl::string_view line, simdjson::dom::parser* parser,
             std::string* reason);

  // `name`: a position in LineRules::names. Returns nullptr if the field is
  // missing or null.
  const FieldValue* Find(size_t name) const {
    return (present_ >> name & 1) == 0 ? nullptr : &values_[name];
  }
  bool HasAny(uint64_t mask) const { return (present_ & mask) != 0; }

 private:
  uint64_t present_ = 0;  // a bit for each name
  std::array<FieldValue, kMostNames> values_;
};

}  // namespace tandem::slow_lane
