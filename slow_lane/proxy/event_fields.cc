#include "slow_lane/proxy/event_fields.h"

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace tandem::slow_lane {
namespace {

constexpr size_t kFields = static_cast<size_t>(Field::kCount);

constexpr std::array<absl::string_view, kFields> kNames = {
#define TANDEM_FIELD(constant, name) name,
    TANDEM_EVENT_FIELDS(TANDEM_FIELD)
#undef TANDEM_FIELD
};

// A perfect hash table of kNames. A search found the factors; a new name may
// need other factors. A static assertion checks that.
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

// Returns Field::kCount for a name that no schema has.
Field FieldOf(absl::string_view name) {
  if (name.empty()) return Field::kCount;
  const size_t field = kFieldOfSlot[SlotOf(name)];
  return name == kNames[field] ? static_cast<Field>(field) : Field::kCount;
}

// The change of the depth by a byte outside of strings; 2: a string begins.
constexpr std::array<int8_t, 256> MakeNesting() {
  std::array<int8_t, 256> nesting = {};
  nesting['{'] = nesting['['] = 1;
  nesting['}'] = nesting[']'] = -1;
  nesting['"'] = 2;
  return nesting;
}

constexpr std::array<int8_t, 256> kNesting = MakeNesting();

// Iterates over the fields in the text of a valid JSON object, in parallel to
// simdjson's iterator. That one has no positions in the text.
class TextCursor {
 public:
  explicit TextCursor(absl::string_view object) : at_(object.data()) {
    SkipBlanks();
    ++at_;  // skips the brace
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

// Records only the position at which the parser stopped.
class FaultFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/,
                    const string_t& /*text*/) override {
    return true;
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return true; }
  bool key(string_t& /*name*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t bytes_read, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    fault_ = std::max(bytes_read, size_t{1}) - 1;
    return false;
  }

  // The position of the first invalid byte.
  std::optional<size_t> fault() const { return fault_; }

 private:
  std::optional<size_t> fault_;
};

// Returns the beginning of an invalid number, such as -Infinity, whose error is
// at `at`.
size_t NumberBegin(absl::string_view line, size_t at) {
  return at > 0 && line[at - 1] == '-' && line[at] == 'I' ? at - 1 : at;
}

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

std::string DescribeJsonFault(absl::string_view line,
                              simdjson::error_code error, size_t max_depth) {
  constexpr size_t kShown = 40;
  if (error == simdjson::DEPTH_ERROR) {
    return absl::StrCat("JSON: expected objects and arrays at most ", max_depth,
                        " deep, found more");
  }
  FaultFinder finder;
  nlohmann::json::sax_parse(line.begin(), line.end(), &finder);
  if (!finder.fault().has_value()) {
    // nlohmann accepts the line: for example an integer above 64 bits.
    return absl::StrCat("JSON: ", simdjson::error_message(error));
  }
  const size_t at = *finder.fault();
  if (at >= line.size()) {
    return absl::StrCat("JSON: expected more, found the line's end at byte ",
                        line.size());
  }
  const size_t begin = NumberBegin(line, at);
  for (const absl::string_view number : {"NaN", "Infinity", "-Infinity"}) {
    if (absl::StartsWith(line.substr(begin), number)) {
      return absl::StrCat("JSON: expected a value at byte ", begin, ", found ",
                          number, ", which JSON lacks: print it as text, \"",
                          number, "\"");
    }
  }
  return absl::StrCat("JSON: cannot be read from byte ", at, " on, found ",
                      PrintableHead(line.substr(at), kShown));
}

}  // namespace tandem::slow_lane
