// The columns of the tables for the fields of events and positions.
//
// Data flow: an event -> EventTable::kInsert, BindEvent -> a row ->
// EventTable::kSelect, ReadEvent -> the event.
// Ownership: plain functions on the caller's statements.
//
//   Statement& insert = **database.Cached(EventTable<RunStep>::kInsert);
//   insert.Bind(1, run);  // then seq_id, source_number, worker_id
//   BindEvent(insert, step);
//   Statement& select = **database.Cached(EventTable<RunStep>::kSelect);
//   ReadEvent(select, batch.add_steps());  // at a row

#ifndef TANDEM_SLOW_LANE_STORE_EVENT_COLUMNS_H_
#define TANDEM_SLOW_LANE_STORE_EVENT_COLUMNS_H_

#include <google/protobuf/util/time_util.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "google/protobuf/timestamp.pb.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// COLUMN(column, field). Each table of events also has run, seq_id,
// source_number, worker_id and, except malformed_rows, timestamp_ns.
#define TANDEM_STEP_COLUMNS(COLUMN)                \
  COLUMN(episode_index, episode_index)             \
  COLUMN(step_index, step_index)                   \
  COLUMN(action_json, action_json)                 \
  COLUMN(observation_json, observation_json)       \
  COLUMN(reward, reward)                           \
  COLUMN(terminated, terminated)                   \
  COLUMN(truncated, truncated)                     \
  COLUMN(policy_label, policy_label)               \
  COLUMN(backend, backend)                         \
  COLUMN(agent_id, agent_id)                       \
  COLUMN(render_hint_json, render_hint_json)       \
  COLUMN(frame_ref, frame_ref)                     \
  COLUMN(payload_version, payload_version)         \
  COLUMN(render_payload_json, render_payload_json) \
  COLUMN(episode_seed, episode_seed)
#define TANDEM_EPISODE_COLUMNS(COLUMN) \
  COLUMN(episode_index, episode_index) \
  COLUMN(total_reward, total_reward)   \
  COLUMN(steps, steps)                 \
  COLUMN(terminated, terminated)       \
  COLUMN(truncated, truncated)         \
  COLUMN(metadata_json, metadata_json) \
  COLUMN(agent_id, agent_id)
#define TANDEM_LIFECYCLE_COLUMNS(COLUMN) \
  COLUMN(event, event)                   \
  COLUMN(payload_json, payload_json)
#define TANDEM_MALFORMED_COLUMNS(COLUMN) \
  COLUMN(byte_offset, offset)            \
  COLUMN(bytes, length)                  \
  COLUMN(reason, reason)                 \
  COLUMN(head, head)
#define TANDEM_POSITION_COLUMNS(COLUMN) \
  COLUMN(byte_offset, offset)           \
  COLUMN(steps, steps)                  \
  COLUMN(episodes, episodes)            \
  COLUMN(lifecycle, lifecycle)          \
  COLUMN(malformed, malformed)          \
  COLUMN(text_lines, text_lines)

namespace event_columns_internal {

// Binds NULL for an empty text.
template <typename Value>
void BindField(Statement& insert, int parameter, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    insert.BindTextOrNull(parameter, value);
  } else {
    insert.Bind(parameter, value);
  }
}

// Reads a text into the field that `mutable_field` returns, which is empty in a
// new event. Returns the text's size.
template <typename MutableField>
size_t ReadText(const Statement& row, int column, MutableField mutable_field) {
  const absl::string_view text = row.Text(column);
  if (!text.empty()) mutable_field()->assign(text.data(), text.size());
  return text.size();
}

template <typename Value>
Value ReadNumber(const Statement& row, int column) {
  if constexpr (std::is_same_v<Value, double>) {
    return row.Real(column);
  } else {
    return static_cast<Value>(row.Int(column));
  }
}

// Converts times from 1677 to 2262; another time becomes the nearest limit.
inline int64_t NanosOf(const google::protobuf::Timestamp& time) {
  constexpr int64_t kPerSecond = 1'000'000'000;
  int64_t nanos;
  if (__builtin_mul_overflow(time.seconds(), kPerSecond, &nanos) ||
      __builtin_add_overflow(nanos, int64_t{time.nanos()}, &nanos)) {
    return time.seconds() < 0 ? std::numeric_limits<int64_t>::min()
                              : std::numeric_limits<int64_t>::max();
  }
  return nanos;
}

}  // namespace event_columns_internal

#define TANDEM_COLUMN_NAME(column, field) ", " #column
#define TANDEM_COLUMN_PLACE(column, field) ", ?"
#define TANDEM_COLUMN_BIND(column, field) \
  event_columns_internal::BindField(insert, parameter++, event.field());
// Only a text has mutable_FIELD.
#define TANDEM_COLUMN_READ(column, field)                                      \
  [&](auto* to) {                                                              \
    if constexpr (requires { to->mutable_##field(); }) {                       \
      text_bytes += event_columns_internal::ReadText(                          \
          row, index++, [to] { return to->mutable_##field(); });               \
    } else {                                                                   \
      to->set_##field(                                                         \
          event_columns_internal::ReadNumber<decltype(to->field())>(row,       \
                                                                    index++)); \
    }                                                                          \
  }(event);

// kInsert: its first parameters are run, seq_id, source_number and worker_id.
// kSelect: rows of the run ?1 (a run_id) above the number ?2, at most ?3, in
// order. The statement itself finds the run, so all rows belong to one
// snapshot: for a run that is removed at this time, all or none. Bind and Read
// return the next parameter, and the next column.
template <typename Event>
struct EventTable;

#define TANDEM_EVENT_TABLE(Event, table, COLUMNS, time_name, time_place)      \
  template <>                                                                 \
  struct EventTable<Event> {                                                  \
    static constexpr char kInsert[] =                                         \
        "INSERT INTO " table                                                  \
        " (run, seq_id, source_number, worker_id" COLUMNS(TANDEM_COLUMN_NAME) \
            time_name ") VALUES (?, ?, ?, ?" COLUMNS(TANDEM_COLUMN_PLACE)     \
                time_place ")";                                               \
    static constexpr char kSelect[] =                                         \
        "SELECT seq_id, worker_id" COLUMNS(TANDEM_COLUMN_NAME) time_name      \
        " FROM " table                                                        \
        " WHERE run = (SELECT run FROM runs WHERE run_id = ?1)"               \
        " AND seq_id > ?2 ORDER BY seq_id LIMIT ?3";                          \
    static int Bind(Statement& insert, int parameter, const Event& event) {   \
      COLUMNS(TANDEM_COLUMN_BIND)                                             \
      return parameter;                                                       \
    }                                                                         \
    static int Read(const Statement& row, int index, Event* event,            \
                    size_t& text_bytes) {                                     \
      COLUMNS(TANDEM_COLUMN_READ)                                             \
      return index;                                                           \
    }                                                                         \
  };

TANDEM_EVENT_TABLE(gymgui::trainer::RunStep, "step_rows", TANDEM_STEP_COLUMNS,
                   ", timestamp_ns", ", ?")
TANDEM_EVENT_TABLE(gymgui::trainer::RunEpisode, "episode_rows",
                   TANDEM_EPISODE_COLUMNS, ", timestamp_ns", ", ?")
TANDEM_EVENT_TABLE(v1::LifecycleEvent, "lifecycle_rows",
                   TANDEM_LIFECYCLE_COLUMNS, ", timestamp_ns", ", ?")
TANDEM_EVENT_TABLE(v1::MalformedLine, "malformed_rows",
                   TANDEM_MALFORMED_COLUMNS, "", "")

// Binds all parameters of kInsert except the first four. The event's texts are
// not copied: they must outlive the statement's use.
template <typename Event>
void BindEvent(Statement& insert, const Event& event) {
  const int time = EventTable<Event>::Bind(insert, 5, event);
  if constexpr (requires { event.timestamp(); }) {
    if (event.has_timestamp()) {
      insert.Bind(time, event_columns_internal::NanosOf(event.timestamp()));
    } else {
      insert.Bind(time, nullptr);
    }
  }
}

// Reads a row of kSelect; returns the bytes of its texts.
template <typename Event>
size_t ReadEvent(const Statement& row, Event* event) {
  size_t text_bytes = 0;
  event->set_seq_id(static_cast<uint64_t>(row.Int(0)));
  if constexpr (requires { event->worker_id(); }) {
    text_bytes += event_columns_internal::ReadText(
        row, 1, [event] { return event->mutable_worker_id(); });
  }
  const int time = EventTable<Event>::Read(row, 2, event, text_bytes);
  if constexpr (requires { event->timestamp(); }) {
    if (!row.IsNull(time)) {
      *event->mutable_timestamp() =
          google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
              row.Int(time));
    }
  }
  return text_bytes;
}

// Reads the row's first four columns, in the streams' order; NULL is 0.
inline Numbers ReadNumbers(const Statement& row) {
  Numbers numbers;
  for (const Stream stream : kAllStreams) {
    numbers[stream] = static_cast<uint64_t>(row.Int(static_cast<int>(stream)));
  }
  return numbers;
}

// Reads the columns of TANDEM_POSITION_COLUMNS from `index` on; NULL is 0.
inline v1::Position ReadPosition(const Statement& row, int index) {
  v1::Position position;
  v1::Position* const event = &position;
  size_t text_bytes = 0;
  TANDEM_POSITION_COLUMNS(TANDEM_COLUMN_READ)
  return position;
}

#undef TANDEM_COLUMN_BIND
#undef TANDEM_COLUMN_READ
#undef TANDEM_EVENT_TABLE

// Calls `visit` with the batch's events of a stream, a RepeatedPtrField, and
// returns its result.
template <typename Visit>
auto VisitEvents(Stream stream, v1::EventBatch& batch, Visit visit) {
  switch (stream) {
    case Stream::kSteps:
      return visit(*batch.mutable_steps());
    case Stream::kEpisodes:
      return visit(*batch.mutable_episodes());
    case Stream::kLifecycle:
      return visit(*batch.mutable_lifecycle());
    case Stream::kMalformed:
      return visit(*batch.mutable_malformed());
  }
  std::abort();
}
template <typename Visit>
auto VisitEvents(Stream stream, const v1::EventBatch& batch, Visit visit) {
  // The lambda passes the lists to `visit` as const.
  return VisitEvents(stream, const_cast<v1::EventBatch&>(batch),
                     [&](const auto& events) { return visit(events); });
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_STORE_EVENT_COLUMNS_H_
