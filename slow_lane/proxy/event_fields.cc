#include "slow_lane/proxy/event_fields.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"

namespace tandem::slow_lane {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;

// Names of a message's field in a line; with two, the first one counts.
struct OtherNames {
  absl::string_view field;
  absl::string_view first;
  absl::string_view second;
};
constexpr OtherNames kOtherNames[] = {
    {"episode_index", "episode_index", "episode"},
    {"step_index", "step_index", "step"},
    {"total_reward", "total_reward", "reward"},
    {"action_json", "action_json", "action"},
    {"observation_json", "observation_json", "observation"},
    {"metadata_json", "metadata_json", "metadata"},
    {"render_hint_json", "render_hint_json", "render"},
    {"render_payload_json", "render_payload", ""},
    {"payload_json", "payload", ""},
    {"timestamp", "ts_unix_ns", ""},
    {"names", "scalars", ""},
};
// MOSAIC's workers use this name for a lifecycle event's time.
constexpr OtherNames kLifecycleTime = {"timestamp", "ts_unix_ns", "timestamp"};

constexpr absl::string_view kRequired[] = {
    "episode_index", "step_index", "reward", "total_reward",
    "steps",         "event",      "step",   "names"};
// Not in a line: the daemon knows the run, and numbers the events; values come
// with their names.
constexpr absl::string_view kNotPrinted[] = {"run_id", "seq_id", "values"};
// Of no field: they decide how the line is read.
constexpr absl::string_view kMoreNames[] = {
    "event_type", "type", "schema_version", "metadata_json", "metadata"};

LineRule::Kind KindOf(const FieldDescriptor& field) {
  using Kind = LineRule::Kind;
  if (field.is_repeated()) return Kind::kNumbers;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return Kind::kU32;
    case FieldDescriptor::CPPTYPE_UINT64:
      return Kind::kU64;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Kind::kReward;
    case FieldDescriptor::CPPTYPE_BOOL:
      return Kind::kFlag;
    case FieldDescriptor::CPPTYPE_STRING:
      return field.name() == "payload_json"          ? Kind::kObject
             : absl::EndsWith(field.name(), "_json") ? Kind::kJson
                                                     : Kind::kText;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Kind::kTime;
    default:
      std::abort();  // no event has such a field
  }
}

OtherNames NamesOf(const FieldDescriptor& field) {
  if (field.containing_type() == v1::LifecycleEvent::descriptor() &&
      field.name() == kLifecycleTime.field) {
    return kLifecycleTime;
  }
  for (const OtherNames& names : kOtherNames) {
    if (field.name() == names.field) return names;
  }
  return {field.name(), field.name(), ""};
}

// Iterates over the values in the text of a valid JSON object, in parallel to
// simdjson's iterator. That one has no positions in the text; but the parser
// keeps the index of its first stage: the position of each brace, bracket,
// colon and comma, and of the first byte of each string and other scalar.
class TextCursor {
 public:
  TextCursor(absl::string_view line, const simdjson::dom::parser& parser)
      : line_(line), at_(parser.implementation->structural_indexes.get() + 1) {}

  // Skips the next field's name, and returns its value's text.
  absl::string_view NextValue() {
    if (line_[*at_] == ',') ++at_;
    at_ += 2;  // the name and the colon
    const size_t begin = *at_;
    int depth = 0;
    do {
      depth += DepthChange(line_[*at_]);
      ++at_;
    } while (depth > 0);
    // A scalar ends before the next token, with its blanks.
    size_t end = DepthChange(line_[begin]) > 0 ? at_[-1] + 1 : *at_;
    while (IsBlank(line_[end - 1])) --end;
    return line_.substr(begin, end - begin);
  }

 private:
  static int DepthChange(char byte) {
    return byte == '{' || byte == '[' ? 1 : byte == '}' || byte == ']' ? -1 : 0;
  }
  static bool IsBlank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
  }

  const absl::string_view line_;
  const uint32_t* at_;
};

// Returns the beginning of an invalid number, such as -Infinity, whose error is
// at `at`.
size_t NumberBegin(absl::string_view line, size_t at) {
  return at > 0 && line[at - 1] == '-' && line[at] == 'I' ? at - 1 : at;
}

// Records only the position of the first invalid byte.
struct FaultFinder : nlohmann::detail::json_sax_acceptor<nlohmann::json> {
  bool parse_error(size_t bytes_read, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) {
    fault = std::max(bytes_read, size_t{1}) - 1;
    return false;
  }
  std::optional<size_t> fault;
};

}  // namespace

const LineRules& LineRules::Get() {
  static const LineRules rules;
  return rules;
}

LineRules::LineRules() : names_(std::begin(kMoreNames), std::end(kMoreNames)) {
  const std::initializer_list<const Descriptor*> events = {
      gymgui::trainer::RunStep::descriptor(),
      gymgui::trainer::RunEpisode::descriptor(),
      v1::LifecycleEvent::descriptor(), v1::Scalars::descriptor()};
  const auto for_each_field = [&](const auto& visit) {
    for (const Descriptor* const event : events) {
      for (int i = 0; i < event->field_count(); ++i) {
        const FieldDescriptor* const field = event->field(i);
        if (!absl::c_linear_search(kNotPrinted, field->name())) visit(field);
      }
    }
  };
  for_each_field([&](const FieldDescriptor* field) {
    const OtherNames names = NamesOf(*field);
    names_.emplace_back(names.first);
    if (!names.second.empty()) names_.emplace_back(names.second);
  });
  absl::c_sort(names_);
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  if (names_.size() > EventFields::kMostNames) std::abort();  // a bit for each
  // Searches the factor with which each name has a slot of its own.
  bool unique = false;
  while (!unique) {
    if (++factor_ > kSlots * kSlots) std::abort();  // needs another SlotOf
    slots_.fill(static_cast<uint8_t>(names_.size()));
    unique = absl::c_all_of(names_, [&](const std::string& name) {
      uint8_t& slot = slots_[SlotOf(name)];
      if (slot != names_.size()) return false;
      slot = static_cast<uint8_t>(&name - names_.data());
      return true;
    });
  }
  for_each_field([&](const FieldDescriptor* field) {
    const OtherNames names = NamesOf(*field);
    LineRule rule = {
        .to = field,
        .kind = KindOf(*field),
        .names = {static_cast<uint8_t>(Find(names.first))},
        .required = absl::c_linear_search(kRequired, field->name())};
    if (!names.second.empty()) {
      rule.names.push_back(static_cast<uint8_t>(Find(names.second)));
    }
    for (const uint8_t name : rule.names) rule.mask |= uint64_t{1} << name;
    if (field->name() == "episode_index") {
      rule.mask |= uint64_t{1} << Find("metadata_json");
      rule.mask |= uint64_t{1} << Find("metadata");
    }
    rules_[field->containing_type()].push_back(std::move(rule));
  });
}

size_t LineRules::SlotOf(absl::string_view name) const {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(name[i]); };
  return (factor_ * (name.size() + 7u * at(0) + 3u * at(name.size() / 2)) +
          at(name.size() - 1)) %
         kSlots;
}

size_t LineRules::Find(absl::string_view name) const {
  if (name.empty()) return names_.size();
  const size_t found = slots_[SlotOf(name)];
  return found < names_.size() && name == names_[found] ? found : names_.size();
}

bool EventFields::Parse(absl::string_view line, simdjson::dom::parser* parser,
                        std::string* reason) {
  const LineRules& rules = LineRules::Get();
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
  TextCursor cursor(line, *parser);
  for (const simdjson::dom::key_value_pair pair : object) {
    const absl::string_view text = cursor.NextValue();
    const size_t name = rules.Find({pair.key.data(), pair.key.size()});
    if (name == rules.names().size()) continue;
    const uint64_t bit = uint64_t{1} << name;
    if ((seen & bit) != 0) {
      *reason =
          absl::StrCat(rules.names()[name], ": expected once, found twice");
      return false;
    }
    seen |= bit;
    if (pair.value.is_null()) continue;
    present_ |= bit;
    values_[name] = {pair.value, text};
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
  if (!finder.fault.has_value()) {
    // nlohmann accepts the line: for example an integer above 64 bits.
    return absl::StrCat("JSON: ", simdjson::error_message(error));
  }
  const size_t at = *finder.fault;
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
