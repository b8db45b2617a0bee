#include "slow_lane/proxy/event_line.h"

#include <simdjson.h>

#include <new>

#include "schema/protos/trainer.pb.h"
#include "slow_lane/proxy/event_fields.h"
#include "slow_lane/proxy/message_reader.h"

namespace tandem::slow_lane {
namespace {

static_assert(EventLineParser::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

// A line longer than this leaves no tables behind.
constexpr size_t kMaxKeptLineBytes = size_t{1} << 20;
constexpr size_t kUsualLineBytes = size_t{16} << 10;

// Adds a message to `messages` if `read` fills it.
template <typename Messages, typename Read>
bool AddIf(Messages* messages, const Read& read) {
  if (read(messages->Add())) return true;
  messages->RemoveLast();
  return false;
}

}  // namespace

struct EventLineParser::Tables {
  Tables() {
    // simdjson refuses what is as deep as its limit, and counts no empty object
    // or array.
    for (simdjson::dom::parser* parser : {&line_parser, &nested_parser}) {
      if (parser->allocate(kUsualLineBytes, kMaxDepth + 1) !=
          simdjson::SUCCESS) {
        throw std::bad_alloc();
      }
    }
  }

  simdjson::dom::parser line_parser;
  simdjson::dom::parser nested_parser;  // of JSON in a string
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
      added =
          AddIf(batch->mutable_steps(), [&](gymgui::trainer::RunStep* step) {
            return reader.ReadStep(step);
          });
      break;
    case LineKind::kEpisode:
      added = AddIf(batch->mutable_episodes(),
                    [&](gymgui::trainer::RunEpisode* episode) {
                      return reader.ReadEpisode(episode);
                    });
      break;
    case LineKind::kLifecycle:
      added = AddIf(batch->mutable_lifecycle(), [&](v1::LifecycleEvent* event) {
        return reader.ReadLifecycle(event);
      });
      break;
    case LineKind::kText:
    case LineKind::kMalformed:
      break;
  }
  return added ? kind : LineKind::kMalformed;
}

}  // namespace tandem::slow_lane
