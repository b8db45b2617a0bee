#include "slow_lane/proxy/event_line.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
#include "slow_lane/proxy/event_fields.h"

namespace tandem::slow_lane {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Timestamp;

static_assert(EventLineParser::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

// The parser frees its tables after a longer line.
constexpr size_t kMaxKeptLineBytes = size_t{1} << 20;
constexpr size_t kUsualLineBytes = size_t{16} << 10;

constexpr int kEventSchemaVersion = 1;  // schema/telemetry's version

constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();
// The maximum of ts_unix_ns: 19 digits, in the year 2286.
constexpr uint64_t kMaxUnixNs = 9'999'999'999'999'999'999u;
constexpr size_t kMaxUnixNsDigits = 19;
constexpr double kMaxUnixSeconds = 9'999'999'999.0;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr size_t kMostNameCharacters = 200;  // of a scalar

// The values of event_type and type.
constexpr std::pair<absl::string_view, LineKind> kKindWords[] = {
    {"step", LineKind::kStep},
    {"episode", LineKind::kEpisode},
    {"scalars", LineKind::kScalars}};
constexpr char kNumberExpected[] =
    "a number or \"NaN\", \"Infinity\" or \"-Infinity\"";

// As in JSON Schema, 3.0 is an integer, too.
std::optional<uint64_t> U64Of(const simdjson::dom::element& value) {
  switch (value.type()) {
    case simdjson::dom::element_type::INT64: {
      const int64_t number = value.get_int64().value_unsafe();
      if (number < 0) return std::nullopt;
      return static_cast<uint64_t>(number);
    }
    case simdjson::dom::element_type::UINT64:
      return value.get_uint64().value_unsafe();
    case simdjson::dom::element_type::DOUBLE: {
      const double number = value.get_double().value_unsafe();
      constexpr double kTwoTo64 = 18'446'744'073'709'551'616.0;
      if (!(number >= 0 && number < kTwoTo64)) return std::nullopt;
      if (number != std::floor(number)) return std::nullopt;
      return static_cast<uint64_t>(number);
    }
    default:
      return std::nullopt;
  }
}

// Takes at most kMaxUnixNsDigits digits.
std::optional<uint64_t> U64OfDigits(absl::string_view text) {
  if (text.empty() || text.size() > kMaxUnixNsDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = 10 * number + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

// Returns nullopt if the value is not a text.
std::optional<absl::string_view> TextOf(const simdjson::dom::element& value) {
  if (!value.is_string()) return std::nullopt;
  const std::string_view text = value.get_string().value_unsafe();
  return absl::string_view(text.data(), text.size());
}

// `text` is valid UTF-8.
size_t CharactersOf(absl::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

// Takes the texts of the numbers that JSON lacks, too.
std::optional<double> NumberOf(const simdjson::dom::element& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get_double().value_unsafe();
  const absl::string_view text = TextOf(value).value_or("");
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  return std::nullopt;
}

// Reads a line's fields into a message by LineRules, and checks them against
// version 1 of schema/telemetry. Sets the reason if the line is malformed. Call
// order, for one line: ReadKind, then once Read with a message of that kind.
class MessageReader {
 public:
  // The arguments must outlive this object. `nested_parser` parses JSON within
  // a string.
  MessageReader(const EventFields& fields, simdjson::dom::parser* nested_parser,
                std::string* reason)
      : fields_(fields), nested_parser_(nested_parser), reason_(reason) {}

  // kMalformed: the reason is set.
  LineKind ReadKind() {
    std::optional<LineKind> kind;
    for (const size_t name : {kNames.event_type, kNames.type}) {
      const FieldValue* const found = fields_.Find(name);
      if (found == nullptr) continue;
      const absl::string_view word = TextOf(found->value).value_or("");
      const auto* const named =
          std::ranges::find_if(kKindWords, [word](const auto& each) {
            return absl::EqualsIgnoreCase(word, each.first);
          });
      if (named == std::end(kKindWords)) {
        Fail(name, "\"step\", \"episode\" or \"scalars\"");
        return LineKind::kMalformed;
      }
      if (kind.value_or(named->second) != named->second) {
        Fail(name, "the same kind as in event_type");
        return LineKind::kMalformed;
      }
      kind = named->second;
    }
    if (!kind.has_value() && fields_.Find(kNames.event) != nullptr) {
      kind = LineKind::kLifecycle;
    }
    if (!kind.has_value()) {
      FailMissing(
          "event_type (\"step\", \"episode\" or \"scalars\") or event (a "
          "name)");
      return LineKind::kMalformed;
    }
    const FieldValue* const version = fields_.Find(kNames.schema_version);
    if (version != nullptr &&
        U64Of(version->value) != uint64_t{kEventSchemaVersion}) {
      Fail(kNames.schema_version,
           absl::StrCat(kEventSchemaVersion, ", the only known one"));
      return LineKind::kMalformed;
    }
    return *kind;
  }

  // Returns false if malformed: the reason is set, the message is incomplete.
  bool Read(Message* message) {
    for (const LineRule& rule : rules_.Of(*message->GetDescriptor())) {
      if (!ReadField(rule, message)) return false;
    }
    return true;
  }

 private:
  // Positions in LineRules::names.
  struct Names {
    size_t event_type, type, event, schema_version, metadata_json, metadata,
        episode_index, timestamp;
  };
  static Names FindNames() {
    const LineRules& rules = LineRules::Get();
    return {rules.Find("event_type"),    rules.Find("type"),
            rules.Find("event"),         rules.Find("schema_version"),
            rules.Find("metadata_json"), rules.Find("metadata"),
            rules.Find("episode_index"), rules.Find("timestamp")};
  }

  // Sets the field to the first of its names, and checks the others.
  bool ReadField(const LineRule& rule, Message* message) {
    bool has_value = false;
    if (fields_.HasAny(rule.mask)) {
      // A worker's "episode" may be for display only. The metadata take
      // precedence, as in MOSAIC.
      if (rule.names[0] == kNames.episode_index) {
        for (const size_t name : {kNames.metadata_json, kNames.metadata}) {
          std::optional<uint64_t> index;
          if (!ReadMetadata(name, &index)) return false;
          if (!index.has_value() || std::exchange(has_value, true)) continue;
          message->GetReflection()->SetUInt64(message, rule.to, *index);
        }
      }
      for (const size_t name : rule.names) {
        const FieldValue* const found = fields_.Find(name);
        if (found == nullptr) continue;
        Message* const target = has_value ? nullptr : message;
        if (!ReadValue(name, *found, rule, target)) return false;
        has_value = true;
      }
    }
    if (has_value || !rule.required) return true;
    return FailMissing(absl::StrJoin(
        rule.names, " or ", [this](std::string* out, const size_t name) {
          absl::StrAppend(out, rules_.names()[name]);
        }));
  }

  // `message`: nullptr: only checks the value.
  bool ReadValue(size_t name, const FieldValue& found, const LineRule& rule,
                 Message* message) {
    const FieldDescriptor* const to = rule.to;
    switch (rule.kind) {
      case LineRule::Kind::kU32:
      case LineRule::Kind::kU64:
        return ReadInteger(name, found, rule, message);
      case LineRule::Kind::kReward:
        return ReadReward(name, found, to, message);
      case LineRule::Kind::kFlag:
        if (!found.value.is_bool()) return Fail(name, "true or false");
        if (message != nullptr) {
          message->GetReflection()->SetBool(
              message, to, found.value.get_bool().value_unsafe());
        }
        return true;
      case LineRule::Kind::kText:
        return ReadText(name, found, to, message);
      case LineRule::Kind::kJson:
        // Under the message's name a text has JSON; under another, it is JSON.
        return SetText(rules_.names()[name] == to->name()
                           ? TextOf(found.value).value_or(found.text)
                           : found.text,
                       to, message);
      case LineRule::Kind::kObject:
        return found.value.is_object() ? SetText(found.text, to, message)
                                       : Fail(name, "an object");
      case LineRule::Kind::kTime:
        return name == kNames.timestamp ? ReadSeconds(name, found, to, message)
                                        : ReadUnixNs(name, found, to, message);
      case LineRule::Kind::kNumbers:
        return ReadNumbers(name, found, static_cast<v1::Scalars*>(message));
    }
    std::abort();
  }

  // Fail and FailMissing set the reason, and return false.
  bool Fail(size_t name, absl::string_view expected) {
    return Fail(name, expected, fields_.Find(name)->text);
  }
  bool Fail(size_t name, absl::string_view expected, absl::string_view found) {
    constexpr size_t kShown = 60;
    *reason_ = absl::StrCat(rules_.names()[name], ": expected ", expected,
                            ", found ", PrintableHead(found, kShown));
    return false;
  }
  bool FailMissing(absl::string_view what) {
    *reason_ = absl::StrCat(what, " is required, found none");
    return false;
  }

  bool ReadInteger(size_t name, const FieldValue& found, const LineRule& rule,
                   Message* message) {
    const FieldDescriptor* const to = rule.to;
    const bool is_small = rule.kind == LineRule::Kind::kU32;
    const uint64_t max =
        is_small ? std::numeric_limits<uint32_t>::max() : kMaxU64;
    const std::optional<uint64_t> value = U64Of(found.value);
    if (!value.has_value() || *value > max) {
      return Fail(name, absl::StrCat("an integer in 0 .. ", max));
    }
    if (message == nullptr) return true;
    if (is_small) {
      message->GetReflection()->SetUInt32(message, to,
                                          static_cast<uint32_t>(*value));
    } else {
      message->GetReflection()->SetUInt64(message, to, *value);
    }
    return true;
  }

  bool ReadReward(size_t name, const FieldValue& found,
                  const FieldDescriptor* to, Message* message) {
    const std::optional<double> value = NumberOf(found.value);
    if (!value.has_value()) return Fail(name, kNumberExpected);
    if (message != nullptr) {
      message->GetReflection()->SetDouble(message, to, *value);
    }
    return true;
  }

  // The field has one name, so `scalars` exists.
  bool ReadNumbers(size_t name, const FieldValue& found, v1::Scalars* scalars) {
    simdjson::dom::object numbers;
    if (found.value.get(numbers) != simdjson::SUCCESS || numbers.size() == 0) {
      return Fail(name, "an object with a number for each name");
    }
    for (const simdjson::dom::key_value_pair pair : numbers) {
      const absl::string_view key(pair.key.data(), pair.key.size());
      if (key.empty() || CharactersOf(key) > kMostNameCharacters) {
        return Fail(
            name,
            absl::StrCat("names of 1 to ", kMostNameCharacters, " characters"),
            key);
      }
      const std::optional<double> value = NumberOf(pair.value);
      if (!value.has_value()) {
        return Fail(name, absl::StrCat(kNumberExpected, " of each name"));
      }
      scalars->add_names(key.data(), key.size());
      scalars->add_values(*value);
    }
    return true;
  }

  bool ReadText(size_t name, const FieldValue& found, const FieldDescriptor* to,
                Message* message) {
    const std::optional<absl::string_view> text = TextOf(found.value);
    if (!text.has_value()) return Fail(name, "a string");
    if (name == kNames.event && text->empty()) {
      return Fail(name, "a name", "an empty string");
    }
    return SetText(*text, to, message);
  }

  static bool SetText(absl::string_view text, const FieldDescriptor* to,
                      Message* message) {
    if (message != nullptr) {
      message->GetReflection()->SetString(message, to, std::string(text));
    }
    return true;
  }

  bool ReadUnixNs(size_t name, const FieldValue& found,
                  const FieldDescriptor* to, Message* message) {
    const std::optional<absl::string_view> text = TextOf(found.value);
    const std::optional<uint64_t> ns =
        text.has_value() ? U64OfDigits(*text) : U64Of(found.value);
    if (!ns.has_value() || *ns > kMaxUnixNs) {
      return Fail(name, absl::StrCat("an integer in 0 .. ", kMaxUnixNs,
                                     ", or a string of at most ",
                                     kMaxUnixNsDigits, " digits"));
    }
    return SetTime(*ns / kNsPerSecond, *ns % kNsPerSecond, to, message);
  }

  bool ReadSeconds(size_t name, const FieldValue& found,
                   const FieldDescriptor* to, Message* message) {
    const double seconds =
        found.value.is_number() ? found.value.get_double().value_unsafe() : -1;
    if (!(seconds >= 0 && seconds <= kMaxUnixSeconds)) {
      return Fail(name, absl::StrCat("seconds since 1970, a number in 0 .. ",
                                     static_cast<uint64_t>(kMaxUnixSeconds)));
    }
    const double floor = std::floor(seconds);
    return SetTime(static_cast<uint64_t>(floor),
                   static_cast<uint64_t>((seconds - floor) *
                                         static_cast<double>(kNsPerSecond)),
                   to, message);
  }

  static bool SetTime(uint64_t seconds, uint64_t nanos,
                      const FieldDescriptor* to, Message* message) {
    if (message == nullptr) return true;
    auto* const time = static_cast<Timestamp*>(
        message->GetReflection()->MutableMessage(message, to));
    time->set_seconds(static_cast<int64_t>(seconds));
    time->set_nanos(static_cast<int32_t>(nanos));
    return true;
  }

  bool ReadMetadata(size_t name, std::optional<uint64_t>* episode_index) {
    const FieldValue* const found = fields_.Find(name);
    if (found == nullptr) return true;
    simdjson::dom::object metadata;
    simdjson::error_code error = simdjson::SUCCESS;
    if (const std::optional<absl::string_view> text = TextOf(found->value)) {
      if (text->empty()) return true;
      error =
          nested_parser_
              ->parse(text->data(), text->size(), /*realloc_if_needed=*/true)
              .get(metadata);
      if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    } else {
      error = found->value.get(metadata);
    }
    if (error != simdjson::SUCCESS) {
      return Fail(name, "an object, or its JSON as a string");
    }
    return ReadIndexIn(name, metadata, episode_index);
  }

  bool ReadIndexIn(size_t name, const simdjson::dom::object& metadata,
                   std::optional<uint64_t>* episode_index) {
    bool seen = false;
    for (const simdjson::dom::key_value_pair pair : metadata) {
      if (pair.key != "episode_index") continue;
      if (std::exchange(seen, true)) {
        return Fail(name, "episode_index once", "it twice");
      }
      if (pair.value.is_null()) continue;
      const std::optional<uint64_t> value = U64Of(pair.value);
      if (!value.has_value()) {
        return Fail(name, absl::StrCat("an integer in 0 .. ", kMaxU64,
                                       " as its episode_index"));
      }
      if (!episode_index->has_value()) *episode_index = value;
    }
    return true;
  }

  static inline const Names kNames = FindNames();

  const LineRules& rules_ = LineRules::Get();
  const EventFields& fields_;
  simdjson::dom::parser* nested_parser_;
  std::string* reason_;
};

}  // namespace

struct EventLineParser::Tables {
  Tables() {
    // simdjson refuses a depth equal to its limit. It does not count empty
    // objects and arrays.
    for (simdjson::dom::parser* parser : {&line_parser, &nested_parser}) {
      if (parser->allocate(kUsualLineBytes, kMaxDepth + 1) !=
          simdjson::SUCCESS) {
        throw std::bad_alloc();
      }
    }
  }

  simdjson::dom::parser line_parser;
  simdjson::dom::parser nested_parser;  // for JSON in a string
  EventFields fields;
};

EventLineParser::EventLineParser() : tables_(new Tables) {}
EventLineParser::~EventLineParser() = default;
EventLineParser::EventLineParser(EventLineParser&&) noexcept = default;
EventLineParser& EventLineParser::operator=(EventLineParser&&) noexcept =
    default;

bool IsMeantAsEvent(absl::string_view line) {
  for (const char byte : line) {
    if (byte != ' ' && byte != '\t' && byte != '\r') return byte == '{';
  }
  return false;
}

LineKind EventLineParser::Parse(absl::string_view line, v1::EventBatch* batch) {
  reason_.clear();
  if (!IsMeantAsEvent(line)) return LineKind::kText;
  const LineKind kind = ParseEvent(line, batch);
  if (line.size() > kMaxKeptLineBytes) tables_ = std::make_unique<Tables>();
  return kind;
}

LineKind EventLineParser::ParseEvent(absl::string_view line,
                                     v1::EventBatch* batch) {
  if (!tables_->fields.Parse(line, &tables_->line_parser, &reason_)) {
    return LineKind::kMalformed;
  }
  MessageReader reader(tables_->fields, &tables_->nested_parser, &reason_);
  const LineKind kind = reader.ReadKind();
  const auto add_to = [&](auto* messages) {
    if (reader.Read(messages->Add())) return kind;
    messages->RemoveLast();
    return LineKind::kMalformed;
  };
  switch (kind) {
    case LineKind::kStep:
      return add_to(batch->mutable_steps());
    case LineKind::kEpisode:
      return add_to(batch->mutable_episodes());
    case LineKind::kLifecycle:
      return add_to(batch->mutable_lifecycle());
    case LineKind::kScalars:
      return add_to(batch->mutable_scalars());
    case LineKind::kText:
    case LineKind::kMalformed:
      return kind;
  }
  std::abort();
}

}  // namespace tandem::slow_lane
