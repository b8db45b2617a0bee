#include "slow_lane/proxy/event_line.h"

#include <simdjson.h>

#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "google/protobuf/timestamp.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/proxy/event_fields.h"

namespace tandem::slow_lane {
namespace {

using ::google::protobuf::Timestamp;
using ::gymgui::trainer::RunEpisode;
using ::gymgui::trainer::RunStep;

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

void SetText(absl::string_view text, std::string* to) {
  to->assign(text.data(), text.size());
}

// Reads a line's fields into a message, and checks them against version 1 of
// schema/telemetry. Sets the reason if the line is malformed. Call order, for
// one line: ReadKind, then once AddTo for the messages of the returned kind.
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
    for (const Field field : {Field::kEventType, Field::kType}) {
      const FieldValue* const found = fields_.Find(field);
      if (found == nullptr) continue;
      const absl::string_view name = TextOf(found->value).value_or("");
      const bool is_step = absl::EqualsIgnoreCase(name, "step");
      if (!is_step && !absl::EqualsIgnoreCase(name, "episode")) {
        Fail(field, "\"step\" or \"episode\"", found->text);
        return LineKind::kMalformed;
      }
      const LineKind named = is_step ? LineKind::kStep : LineKind::kEpisode;
      if (kind.value_or(named) != named) {
        Fail(field, "the same kind as in event_type", found->text);
        return LineKind::kMalformed;
      }
      kind = named;
    }
    if (!kind.has_value() && fields_.Find(Field::kEvent) != nullptr) {
      kind = LineKind::kLifecycle;
    }
    if (!kind.has_value()) {
      FailMissing("event_type (\"step\" or \"episode\") or event (a name)");
      return LineKind::kMalformed;
    }
    return ReadVersion() ? *kind : LineKind::kMalformed;
  }

  // Adds a message to `messages`. Returns false, and adds none, if malformed:
  // the reason is set.
  template <typename Messages>
  bool AddTo(Messages* messages) {
    if (Read(messages->Add())) return true;
    messages->RemoveLast();
    return false;
  }

 private:
  // Returns false if malformed: the reason is set, the message is incomplete.
  bool Read(RunStep* step) {
    std::optional<uint64_t> episode_index, step_index, payload_version, seed;
    std::optional<double> reward;
    const bool valid =
        ReadEpisodeIndex(&episode_index) &&
        ReadU64(Field::kStepIndex, kMaxU64, &step_index) &&
        ReadU64(Field::kStep, kMaxU64, &step_index) &&
        (step_index.has_value() || FailMissing("step_index or step")) &&
        ReadReward(Field::kReward, &reward) &&
        (reward.has_value() || FailMissing("reward")) &&
        ReadBool(Field::kTerminated, step, &RunStep::set_terminated) &&
        ReadBool(Field::kTruncated, step, &RunStep::set_truncated) &&
        ReadU64(Field::kPayloadVersion, std::numeric_limits<uint32_t>::max(),
                &payload_version) &&
        ReadU64(Field::kEpisodeSeed, kMaxU64, &seed) &&
        ReadText(Field::kPolicyLabel, step, &RunStep::mutable_policy_label) &&
        ReadText(Field::kBackend, step, &RunStep::mutable_backend) &&
        ReadText(Field::kAgentId, step, &RunStep::mutable_agent_id) &&
        ReadText(Field::kFrameRef, step, &RunStep::mutable_frame_ref) &&
        ReadText(Field::kWorkerId, step, &RunStep::mutable_worker_id) &&
        ReadUnixNs(step);
    if (!valid) return false;
    step->set_episode_index(*episode_index);
    step->set_step_index(*step_index);
    step->set_reward(*reward);
    step->set_payload_version(
        static_cast<uint32_t>(payload_version.value_or(0)));
    step->set_episode_seed(seed.value_or(0));
    CopyJson(Field::kActionJson, Field::kAction, step,
             &RunStep::mutable_action_json);
    CopyJson(Field::kObservationJson, Field::kObservation, step,
             &RunStep::mutable_observation_json);
    CopyJson(Field::kRenderHintJson, Field::kRender, step,
             &RunStep::mutable_render_hint_json);
    CopyRaw(Field::kRenderPayload, step, &RunStep::mutable_render_payload_json);
    return true;
  }

  bool Read(RunEpisode* episode) {
    std::optional<uint64_t> episode_index, steps;
    std::optional<double> total_reward;
    const bool valid =
        ReadEpisodeIndex(&episode_index) &&
        ReadReward(Field::kTotalReward, &total_reward) &&
        ReadReward(Field::kReward, &total_reward) &&
        (total_reward.has_value() || FailMissing("total_reward or reward")) &&
        ReadU64(Field::kSteps, kMaxU64, &steps) &&
        (steps.has_value() || FailMissing("steps")) &&
        ReadBool(Field::kTerminated, episode, &RunEpisode::set_terminated) &&
        ReadBool(Field::kTruncated, episode, &RunEpisode::set_truncated) &&
        ReadText(Field::kAgentId, episode, &RunEpisode::mutable_agent_id) &&
        ReadText(Field::kWorkerId, episode, &RunEpisode::mutable_worker_id) &&
        ReadUnixNs(episode);
    if (!valid) return false;
    episode->set_episode_index(*episode_index);
    episode->set_total_reward(*total_reward);
    episode->set_steps(*steps);
    CopyJson(Field::kMetadataJson, Field::kMetadata, episode,
             &RunEpisode::mutable_metadata_json);
    return true;
  }

  bool Read(v1::LifecycleEvent* event) {
    if (!ReadText(Field::kEvent, event, &v1::LifecycleEvent::mutable_event)) {
      return false;
    }
    if (event->event().empty()) {
      return Fail(Field::kEvent, "a name", "an empty string");
    }
    if (const FieldValue* payload = fields_.Find(Field::kPayload)) {
      if (!payload->value.is_object()) {
        return Fail(Field::kPayload, "an object", payload->text);
      }
      SetText(payload->text, event->mutable_payload_json());
    }
    if (!ReadText(Field::kWorkerId, event,
                  &v1::LifecycleEvent::mutable_worker_id))
      return false;
    // MOSAIC's workers use this name for a lifecycle event's time.
    if (const FieldValue* timestamp = fields_.Find(Field::kTimestamp)) {
      const double seconds = timestamp->value.is_number()
                                 ? timestamp->value.get_double().value_unsafe()
                                 : -1;
      if (!(seconds >= 0 && seconds <= kMaxUnixSeconds)) {
        return Fail(Field::kTimestamp,
                    absl::StrCat("seconds since 1970, a number in 0 .. ",
                                 static_cast<uint64_t>(kMaxUnixSeconds)),
                    timestamp->text);
      }
      const double floor = std::floor(seconds);
      event->mutable_timestamp()->set_seconds(static_cast<int64_t>(floor));
      event->mutable_timestamp()->set_nanos(static_cast<int32_t>(
          (seconds - floor) * static_cast<double>(kNsPerSecond)));
    }
    return ReadUnixNs(event);
  }

  // Fail and FailMissing set the reason, and return false.
  bool Fail(Field field, absl::string_view expected, absl::string_view found) {
    constexpr size_t kShown = 60;
    *reason_ = absl::StrCat(FieldName(field), ": expected ", expected,
                            ", found ", PrintableHead(found, kShown));
    return false;
  }

  bool FailMissing(absl::string_view what) {
    *reason_ = absl::StrCat(what, " is required, found none");
    return false;
  }

  // A Read does not change its target if the field is missing, or if a field of
  // another name has already set it.

  bool ReadVersion() {
    const FieldValue* const found = fields_.Find(Field::kSchemaVersion);
    if (found == nullptr) return true;
    if (U64Of(found->value) == uint64_t{kEventSchemaVersion}) {
      return true;
    }
    return Fail(Field::kSchemaVersion,
                absl::StrCat(kEventSchemaVersion, ", the only known one"),
                found->text);
  }

  bool ReadU64(Field field, uint64_t max, std::optional<uint64_t>* number) {
    const FieldValue* const found = fields_.Find(field);
    if (found == nullptr) return true;
    const std::optional<uint64_t> value = U64Of(found->value);
    if (!value.has_value() || *value > max) {
      return Fail(field, absl::StrCat("an integer in 0 .. ", max), found->text);
    }
    if (!number->has_value()) *number = value;
    return true;
  }

  bool ReadReward(Field field, std::optional<double>* reward) {
    const FieldValue* const found = fields_.Find(field);
    if (found == nullptr) return true;
    std::optional<double> value;
    if (const std::optional<absl::string_view> text = TextOf(found->value)) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (*text == "NaN") value = std::numeric_limits<double>::quiet_NaN();
      if (*text == "Infinity") value = kInfinity;
      if (*text == "-Infinity") value = -kInfinity;
    } else if (found->value.is_number()) {
      value = found->value.get_double().value_unsafe();
    }
    if (!value.has_value()) {
      return Fail(field, "a number or \"NaN\", \"Infinity\" or \"-Infinity\"",
                  found->text);
    }
    if (!reward->has_value()) *reward = value;
    return true;
  }

  template <typename Message>
  bool ReadBool(Field field, Message* message, void (Message::*set)(bool)) {
    const FieldValue* const found = fields_.Find(field);
    if (found == nullptr) return true;
    if (!found->value.is_bool()) {
      return Fail(field, "true or false", found->text);
    }
    (message->*set)(found->value.get_bool().value_unsafe());
    return true;
  }

  // The mutable accessor of a message's text field.
  template <typename Message>
  using Text = std::string* (Message::*)();

  template <typename Message>
  bool ReadText(Field field, Message* message, Text<Message> text) {
    const FieldValue* const found = fields_.Find(field);
    if (found == nullptr) return true;
    const std::optional<absl::string_view> value = TextOf(found->value);
    if (!value.has_value()) return Fail(field, "a string", found->text);
    SetText(*value, (message->*text)());
    return true;
  }

  bool ReadEpisodeIndex(std::optional<uint64_t>* index) {
    // A worker's "episode" may be for display only. The metadata take
    // precedence, as in MOSAIC.
    return ReadMetadata(Field::kMetadataJson, index) &&
           ReadMetadata(Field::kMetadata, index) &&
           ReadU64(Field::kEpisodeIndex, kMaxU64, index) &&
           ReadU64(Field::kEpisode, kMaxU64, index) &&
           (index->has_value() || FailMissing("episode_index or episode"));
  }

  bool ReadMetadata(Field field, std::optional<uint64_t>* episode_index) {
    const FieldValue* const found = fields_.Find(field);
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
      return Fail(field, "an object, or its JSON as a string", found->text);
    }
    return ReadIndexIn(field, metadata, episode_index);
  }

  bool ReadIndexIn(Field field, const simdjson::dom::object& metadata,
                   std::optional<uint64_t>* episode_index) {
    bool seen = false;
    for (const simdjson::dom::key_value_pair pair : metadata) {
      if (pair.key != "episode_index") continue;
      if (std::exchange(seen, true)) {
        return Fail(field, "episode_index once", "it twice");
      }
      if (pair.value.is_null()) continue;
      const std::optional<uint64_t> value = U64Of(pair.value);
      if (!value.has_value()) {
        return Fail(field,
                    absl::StrCat("an integer in 0 .. ", kMaxU64,
                                 " as its episode_index"),
                    fields_.Find(field)->text);
      }
      if (!episode_index->has_value()) *episode_index = value;
    }
    return true;
  }

  template <typename Message>
  void CopyRaw(Field field, Message* message, Text<Message> json) const {
    if (const FieldValue* found = fields_.Find(field)) {
      SetText(found->text, (message->*json)());
    }
  }

  // Under the name `text_field`, the value is a text with JSON; under the name
  // `field`, it is any JSON value.
  template <typename Message>
  void CopyJson(Field text_field, Field field, Message* message,
                Text<Message> json) const {
    const FieldValue* const found = fields_.Find(text_field);
    if (found == nullptr) {
      CopyRaw(field, message, json);
      return;
    }
    SetText(TextOf(found->value).value_or(found->text), (message->*json)());
  }

  template <typename Message>
  bool ReadUnixNs(Message* message) {
    const FieldValue* const found = fields_.Find(Field::kTsUnixNs);
    if (found == nullptr) return true;
    const std::optional<absl::string_view> text = TextOf(found->value);
    const std::optional<uint64_t> ns =
        text.has_value() ? U64OfDigits(*text) : U64Of(found->value);
    if (!ns.has_value() || *ns > kMaxUnixNs) {
      return Fail(Field::kTsUnixNs,
                  absl::StrCat("an integer in 0 .. ", kMaxUnixNs,
                               ", or a string of at most ", kMaxUnixNsDigits,
                               " digits"),
                  found->text);
    }
    Timestamp* const timestamp = message->mutable_timestamp();
    timestamp->set_seconds(static_cast<int64_t>(*ns / kNsPerSecond));
    timestamp->set_nanos(static_cast<int32_t>(*ns % kNsPerSecond));
    return true;
  }

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
  bool added = false;
  switch (kind) {
    case LineKind::kStep:
      added = reader.AddTo(batch->mutable_steps());
      break;
    case LineKind::kEpisode:
      added = reader.AddTo(batch->mutable_episodes());
      break;
    case LineKind::kLifecycle:
      added = reader.AddTo(batch->mutable_lifecycle());
      break;
    case LineKind::kText:
    case LineKind::kMalformed:
      break;
  }
  return added ? kind : LineKind::kMalformed;
}

}  // namespace tandem::slow_lane
