#include "slow_lane/proxy/event_line_twin.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "schema/protos/trainer.pb.h"

namespace tandem::slow_lane {
namespace {

using Json = nlohmann::json;

// What makes a line malformed.
struct Wrong {};

const std::set<std::string>& KnownFields() {
  static const auto* const known = new std::set<std::string>{"action",
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
                                                             "worker_id"};
  return *known;
}

// nlohmann's own builder, with an eye on what it lets pass: integers beyond 64
// bits, names twice, any depth.
class Builder : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;

  explicit Builder(Json* json) : Base(*json, /*allow_exceptions_=*/false) {}

  bool null() { return Inside() && Base::null(); }
  bool boolean(bool value) { return Inside() && Base::boolean(value); }
  bool number_integer(number_integer_t value) {
    return Inside() && Base::number_integer(value);
  }
  bool number_unsigned(number_unsigned_t value) {
    return Inside() && Base::number_unsigned(value);
  }
  bool number_float(number_float_t value, const string_t& text) {
    if (text.find_first_of(".eE") == std::string::npos) return false;
    return Inside() && Base::number_float(value, text);
  }
  bool string(string_t& value) { return Inside() && Base::string(value); }
  bool key(string_t& name) {
    Level& level = levels_.back();
    level.name = name;
    if (!level.names.insert(name).second) {
      std::string path;
      for (const Level& each : levels_) path += "/" + each.name;
      repeated_.insert(path);
    }
    return Base::key(name);
  }
  bool start_object(size_t size) {
    const bool inside = Inside();
    levels_.emplace_back();
    return inside && Base::start_object(size);
  }
  bool end_object() {
    levels_.pop_back();
    return Base::end_object();
  }
  bool start_array(size_t size) {
    const bool inside = Inside();
    levels_.emplace_back();
    return inside && Base::start_array(size);
  }
  bool end_array() {
    levels_.pop_back();
    return Base::end_array();
  }

  // What stands twice: "/reward", "/metadata/episode_index".
  const std::set<std::string>& repeated() const { return repeated_; }

 private:
  // Whether a value may stand as deep as here.
  bool Inside() const { return levels_.size() <= EventLineParser::kMaxDepth; }

  struct Level {  // an array's stays empty
    std::string name;
    std::set<std::string> names;
  };
  std::vector<Level> levels_;
  std::set<std::string> repeated_;
};

struct Document {
  Json json;
  std::set<std::string> repeated;
};

Document Parse(const std::string& text) {
  // nlohmann skips a byte order mark, and ends at a NUL byte.
  if (text.find('\0') != std::string::npos) throw Wrong();
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) throw Wrong();
  Document document;
  Builder builder(&document.json);
  if (!Json::sax_parse(text, &builder)) throw Wrong();
  document.repeated = builder.repeated();
  return document;
}

// Null if it is missing.
Json Get(const Json& object, const std::string& name) {
  return object.value(name, Json());
}

std::optional<uint64_t> U64(const Json& value, uint64_t max) {
  if (value.is_null()) return std::nullopt;
  uint64_t number = 0;
  if (value.is_number_unsigned()) {
    number = value.get<uint64_t>();
  } else if (value.is_number_integer()) {
    if (value.get<int64_t>() < 0) throw Wrong();
    number = static_cast<uint64_t>(value.get<int64_t>());
  } else if (value.is_number_float()) {
    const double real = value.get<double>();
    if (std::trunc(real) != real || real < 0 || real >= std::ldexp(1, 64)) {
      throw Wrong();
    }
    number = static_cast<uint64_t>(real);
  } else {
    throw Wrong();
  }
  if (number > max) throw Wrong();
  return number;
}

template <typename Value>
Value Required(const std::optional<Value>& value) {
  if (!value.has_value()) throw Wrong();
  return *value;
}

// The first of the fields that is there, once all are checked.
template <typename Read>
auto FirstOf(const Json& event, std::initializer_list<const char*> names,
             const Read& read) {
  decltype(read(event)) first;
  for (const char* const name : names) {
    const auto value = read(Get(event, name));
    if (!first.has_value()) first = value;
  }
  return first;
}

std::optional<uint64_t> U64Of(
    const Json& event, std::initializer_list<const char*> names,
    uint64_t max = std::numeric_limits<uint64_t>::max()) {
  return FirstOf(event, names,
                 [max](const Json& value) { return U64(value, max); });
}

std::optional<double> RewardOf(const Json& event,
                               std::initializer_list<const char*> names) {
  return FirstOf(event, names, [](const Json& value) -> std::optional<double> {
    if (value.is_null()) return std::nullopt;
    if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (value == "Infinity") return std::numeric_limits<double>::infinity();
    if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (!value.is_number()) throw Wrong();
    return value.get<double>();
  });
}

bool FlagOf(const Json& event, const char* name) {
  const Json value = Get(event, name);
  if (value.is_null()) return false;
  if (!value.is_boolean()) throw Wrong();
  return value.get<bool>();
}

std::string TextOf(const Json& event, const char* name) {
  const Json value = Get(event, name);
  if (value.is_null()) return "";
  if (!value.is_string()) throw Wrong();
  return value.get<std::string>();
}

// `text_name` may be null.
std::string JsonOf(const Json& event, const char* text_name, const char* name) {
  const Json text = text_name == nullptr ? Json() : Get(event, text_name);
  if (text.is_string()) return Normalized(text.get<std::string>());
  const Json value = text.is_null() ? Get(event, name) : text;
  return value.is_null() ? "" : value.dump();
}

uint64_t EpisodeIndexOf(const Document& event) {
  std::optional<uint64_t> index;
  for (const std::string name : {"metadata_json", "metadata"}) {
    Document metadata = {Get(event.json, name), {}};
    if (metadata.json.is_null() || metadata.json == "") continue;
    if (metadata.json.is_string()) {
      metadata = Parse(metadata.json.get<std::string>());
    }
    if (!metadata.json.is_object() ||
        metadata.repeated.count("/episode_index") > 0 ||
        event.repeated.count("/" + name + "/episode_index") > 0) {
      throw Wrong();
    }
    const auto number = U64Of(metadata.json, {"episode_index"});
    if (!index.has_value()) index = number;
  }
  const auto number = U64Of(event.json, {"episode_index", "episode"});
  return Required(index.has_value() ? index : number);
}

template <typename Message>
void SetUnixNs(const Json& event, Message* message) {
  Json value = Get(event, "ts_unix_ns");
  if (value.is_null()) return;
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const bool digits = std::all_of(text.begin(), text.end(), [](char digit) {
      return digit >= '0' && digit <= '9';
    });
    if (!digits || text.empty() || text.size() > 19) throw Wrong();
    value = std::stoull(text);
  }
  const uint64_t ns = *U64(value, 9'999'999'999'999'999'999u);
  message->mutable_timestamp()->set_seconds(
      static_cast<int64_t>(ns / 1000000000));
  message->mutable_timestamp()->set_nanos(
      static_cast<int32_t>(ns % 1000000000));
}

LineKind KindOf(const Json& event) {
  std::set<LineKind> kinds;
  for (const char* const name : {"event_type", "type"}) {
    if (Get(event, name).is_null()) continue;
    std::string kind = TextOf(event, name);
    for (char& letter : kind) {
      if (letter >= 'A' && letter <= 'Z') {
        letter = static_cast<char>(letter + ('a' - 'A'));
      }
    }
    if (kind != "step" && kind != "episode") throw Wrong();
    kinds.insert(kind == "step" ? LineKind::kStep : LineKind::kEpisode);
  }
  if (kinds.size() > 1) throw Wrong();
  if (kinds.size() == 1) return *kinds.begin();
  if (Get(event, "event").is_null()) throw Wrong();
  return LineKind::kLifecycle;
}

void FillStep(const Document& document, gymgui::trainer::RunStep* step) {
  const Json& event = document.json;
  step->set_episode_index(EpisodeIndexOf(document));
  step->set_step_index(Required(U64Of(event, {"step_index", "step"})));
  step->set_reward(Required(RewardOf(event, {"reward"})));
  step->set_terminated(FlagOf(event, "terminated"));
  step->set_truncated(FlagOf(event, "truncated"));
  step->set_payload_version(static_cast<uint32_t>(
      U64Of(event, {"payload_version"}, 4'294'967'295u).value_or(0)));
  step->set_episode_seed(U64Of(event, {"episode_seed"}).value_or(0));
  step->set_policy_label(TextOf(event, "policy_label"));
  step->set_backend(TextOf(event, "backend"));
  step->set_agent_id(TextOf(event, "agent_id"));
  step->set_frame_ref(TextOf(event, "frame_ref"));
  step->set_worker_id(TextOf(event, "worker_id"));
  SetUnixNs(event, step);
  step->set_action_json(JsonOf(event, "action_json", "action"));
  step->set_observation_json(JsonOf(event, "observation_json", "observation"));
  step->set_render_hint_json(JsonOf(event, "render_hint_json", "render"));
  step->set_render_payload_json(JsonOf(event, nullptr, "render_payload"));
}

void FillEpisode(const Document& document,
                 gymgui::trainer::RunEpisode* episode) {
  const Json& event = document.json;
  episode->set_episode_index(EpisodeIndexOf(document));
  episode->set_total_reward(
      Required(RewardOf(event, {"total_reward", "reward"})));
  episode->set_steps(Required(U64Of(event, {"steps"})));
  episode->set_terminated(FlagOf(event, "terminated"));
  episode->set_truncated(FlagOf(event, "truncated"));
  episode->set_agent_id(TextOf(event, "agent_id"));
  episode->set_worker_id(TextOf(event, "worker_id"));
  SetUnixNs(event, episode);
  episode->set_metadata_json(JsonOf(event, "metadata_json", "metadata"));
}

void FillLifecycle(const Json& event, v1::LifecycleEvent* lifecycle) {
  lifecycle->set_event(TextOf(event, "event"));
  if (lifecycle->event().empty()) throw Wrong();
  const Json payload = Get(event, "payload");
  if (!payload.is_null() && !payload.is_object()) throw Wrong();
  lifecycle->set_payload_json(JsonOf(event, nullptr, "payload"));
  lifecycle->set_worker_id(TextOf(event, "worker_id"));
  const Json timestamp = Get(event, "timestamp");
  if (!timestamp.is_null()) {
    if (!timestamp.is_number()) throw Wrong();
    const double seconds = timestamp.get<double>();
    if (seconds < 0 || seconds > 9'999'999'999.0) throw Wrong();
    double whole = 0;
    const double part = std::modf(seconds, &whole);
    lifecycle->mutable_timestamp()->set_seconds(static_cast<int64_t>(whole));
    lifecycle->mutable_timestamp()->set_nanos(static_cast<int32_t>(part * 1e9));
  }
  SetUnixNs(event, lifecycle);
}

}  // namespace

LineKind ParseByTwin(const std::string& line, v1::EventBatch* batch) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos || line[first] != '{') return LineKind::kText;
  v1::EventBatch parsed;
  LineKind kind = LineKind::kMalformed;
  try {
    const Document event = Parse(line);
    for (const std::string& name : KnownFields()) {
      if (event.repeated.count("/" + name) > 0) throw Wrong();
    }
    kind = KindOf(event.json);
    if (U64(Get(event.json, "schema_version"), 1).value_or(1) != 1) {
      throw Wrong();
    }
    if (kind == LineKind::kStep) FillStep(event, parsed.add_steps());
    if (kind == LineKind::kEpisode) FillEpisode(event, parsed.add_episodes());
    if (kind == LineKind::kLifecycle) {
      FillLifecycle(event.json, parsed.add_lifecycle());
    }
  } catch (const Wrong&) {
    return LineKind::kMalformed;
  }
  batch->MergeFrom(parsed);
  return kind;
}

std::string Normalized(const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? json : parsed.dump();
}

}  // namespace tandem::slow_lane
