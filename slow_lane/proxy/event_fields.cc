#include "slow_lane/proxy/event_fields.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "slow_lane/proxy/json_fault.h"

namespace tandem::slow_lane {
namespace {

constexpr size_t kFields = static_cast<size_t>(Field::kCount);

// In the order of Field.
constexpr std::array<absl::string_view, kFields> kNames = {
    "action",
    "action_json",
    "agent_id",
    "backend",
    "episode",
    "episode_index",
    "episode_seed",
    "event",
    "event_type",
    "frame_ref",
    "metadata",
    "metadata_json",
    "observation",
    "observation_json",
    "payload",
    "payload_version",
    "policy_label",
    "render",
    "render_hint_json",
    "render_payload",
    "reward",
    "schema_version",
    "step",
    "step_index",
    "steps",
    "terminated",
    "timestamp",
    "total_reward",
    "truncated",
    "ts_unix_ns",
    "type",
    "worker_id",
};

// A table of kNames by a hash that no two of them share. (A search of factors
// found these; a new name may need others, as the assertion will tell.)
constexpr size_t kSlots = 64;

constexpr size_t SlotOf(absl::string_view name) {
  const auto first = static_cast<uint8_t>(name.front());
  const auto last = static_cast<uint8_t>(name.back());
  return (43 * name.size() + 7u * first + last) % kSlots;
}

constexpr std::array<uint8_t, kSlots> MakeFieldOfSlot() {
  std::array<uint8_t, kSlots> fields = {};
  for (size_t i = 0; i < kFields; ++i) {
    fields[SlotOf(kNames[i])] = static_cast<uint8_t>(i);
  }
  return fields;
}

constexpr std::array<uint8_t, kSlots> kFieldOfSlot = MakeFieldOfSlot();

constexpr bool EachNameHasItsSlot() {
  for (size_t i = 0; i < kFields; ++i) {
    if (kFieldOfSlot[SlotOf(kNames[i])] != i) return false;
  }
  return true;
}
static_assert(EachNameHasItsSlot());

// Field::kCount for a name that no schema has.
Field FieldOf(absl::string_view name) {
  if (name.empty()) return Field::kCount;
  const size_t field = kFieldOfSlot[SlotOf(name)];
  return name == kNames[field] ? static_cast<Field>(field) : Field::kCount;
}

// What a byte outside of strings does to the depth; 2: begins a string.
constexpr std::array<int8_t, 256> MakeNesting() {
  std::array<int8_t, 256> nesting = {};
  nesting['{'] = nesting['['] = 1;
  nesting['}'] = nesting[']'] = -1;
  nesting['"'] = 2;
  return nesting;
}

constexpr std::array<int8_t, 256> kNesting = MakeNesting();

// Walks the text of a JSON object that simdjson has found valid, field by
// field, beside the iterator over its DOM, which does not tell where in the
// text a value stands.
class TextCursor {
 public:
  explicit TextCursor(absl::string_view object) : at_(object.data()) {
    SkipBlanks();
    ++at_;  // the brace
  }

  // Skips the next field's name, and returns its value's text.
  absl::string_view NextValue() {
    SkipTo('"');
    SkipString();
    SkipTo(':');
    ++at_;
    SkipBlanks();
    const char* const begin = at_;
    SkipValue();
    return {begin, static_cast<size_t>(at_ - begin)};
  }

 private:
  void SkipTo(char wanted) {
    while (*at_ != wanted) ++at_;
  }
  void SkipBlanks() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n') ++at_;
  }
  void SkipString() {
    for (++at_; *at_ != '"'; ++at_) {
      if (*at_ == '\\') ++at_;
    }
    ++at_;
  }
  void SkipValue() {
    switch (*at_) {
      case '"':
        SkipString();
        return;
      case '{':
      case '[':
        SkipNested();
        return;
      default:  // a number, true, false, null
        while (*at_ != ',' && *at_ != '}' && *at_ != ' ' && *at_ != '\t' &&
               *at_ != '\r' && *at_ != '\n') {
          ++at_;
        }
    }
  }
  void SkipNested() {
    int depth = 0;
    do {
      while (kNesting[static_cast<uint8_t>(*at_)] == 0) ++at_;
      if (*at_ == '"') {
        SkipString();
      } else {
        depth += kNesting[static_cast<uint8_t>(*at_++)];
      }
    } while (depth > 0);
  }

  const char* at_;
};

}  // namespace

absl::string_view FieldName(Field field) {
  return kNames[static_cast<size_t>(field)];
}

bool EventFields::Parse(absl::string_view line, simdjson::dom::parser* parser,
                        std::string* reason) {
  present_ = 0;
  simdjson::dom::object object;
  const simdjson::error_code error =
      parser->parse(line.data(), line.size(), /*realloc_if_needed=*/false)
          .get(object);
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();  // as operator new
  if (error != simdjson::SUCCESS) {
    *reason = DescribeJsonFault(line, error, parser->max_depth() - 1);
    return false;
  }
  uint64_t seen = 0;
  TextCursor cursor(line);
  for (const simdjson::dom::key_value_pair pair : object) {
    const absl::string_view text = cursor.NextValue();
    const Field field = FieldOf({pair.key.data(), pair.key.size()});
    if (field == Field::kCount) continue;
    const uint64_t bit = uint64_t{1} << static_cast<int>(field);
    if ((seen & bit) != 0) {
      *reason = absl::StrCat(FieldName(field), ": expected once, found twice");
      return false;
    }
    seen |= bit;
    if (pair.value.is_null()) continue;
    present_ |= bit;
    values_[static_cast<size_t>(field)] = {pair.value, text};
  }
  return true;
}

}  // namespace tandem::slow_lane
