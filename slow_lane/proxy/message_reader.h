// MessageReader: a line's fields as a message, or why they make none.
//
// Data flow: EventFields -> checked against version 1 of the schemas in
// schema/telemetry -> RunStep, RunEpisode or LifecycleEvent.
// Ownership: a helper of EventLineParser, for one line.
//
//   MessageReader reader(fields, &nested_parser, &reason);
//   if (reader.ReadKind() == LineKind::kStep && reader.ReadStep(&step)) ...

#ifndef TANDEM_SLOW_LANE_PROXY_MESSAGE_READER_H_
#define TANDEM_SLOW_LANE_PROXY_MESSAGE_READER_H_

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/proxy/event_fields.h"
#include "slow_lane/proxy/event_line.h"

namespace tandem::slow_lane {

// Of one line. ReadKind comes first; then, once, the Read of what it said.
class MessageReader {
 public:
  // Refers to all of these. `nested_parser` is for JSON within a string.
  MessageReader(const EventFields& fields, simdjson::dom::parser* nested_parser,
                std::string* reason)
      : fields_(fields), nested_parser_(nested_parser), reason_(reason) {}

  // kMalformed: the reason is set.
  LineKind ReadKind();
  // False: malformed; the reason is set, the message is half filled.
  bool ReadStep(gymgui::trainer::RunStep* step);
  bool ReadEpisode(gymgui::trainer::RunEpisode* episode);
  bool ReadLifecycle(v1::LifecycleEvent* event);

 private:
  // Set the reason, and are false.
  bool Fail(Field field, absl::string_view expected, absl::string_view found);
  bool FailMissing(absl::string_view what);

  // A text field of a message, which becomes an object once it is asked for.
  template <typename Message>
  using Text = std::string* (Message::*)();

  // Each Read leaves its target alone if the field is missing, or if another
  // name has filled it already.
  bool ReadVersion();
  bool ReadU64(Field field, uint64_t max, std::optional<uint64_t>* number);
  bool ReadReward(Field field, std::optional<double>* reward);
  bool ReadBool(Field field, bool* value);
  template <typename Message>
  bool ReadText(Field field, Message* message, Text<Message> text);
  bool ReadEpisodeIndex(std::optional<uint64_t>* index);
  bool ReadMetadata(Field field, std::optional<uint64_t>* episode_index);
  bool ReadIndexIn(Field field, const simdjson::dom::object& metadata,
                   std::optional<uint64_t>* episode_index);
  // Text whose JSON counts as it is under the one name, any value under the
  // other.
  template <typename Message>
  void CopyJson(Field text_field, Field field, Message* message,
                Text<Message> json) const;
  template <typename Message>
  void CopyRaw(Field field, Message* message, Text<Message> json) const;
  template <typename Message>
  bool ReadUnixNs(Message* message);

  const EventFields& fields_;
  simdjson::dom::parser* nested_parser_;
  std::string* reason_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_MESSAGE_READER_H_
