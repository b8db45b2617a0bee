#include "slow_lane/store/event_reader.h"

#include <algorithm>
#include <utility>

#include "google/protobuf/timestamp.pb.h"
#include "slow_lane/runs/run_id.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RunEpisode;
using gymgui::trainer::RunStep;

// The run is looked up by the same statement, so that its rows are those of one
// snapshot: a run that is removed meanwhile is there or gone, never in part.
#define TANDEM_OF_RUN                                     \
  " WHERE run = (SELECT run FROM runs WHERE run_id = ?1)" \
  " AND seq_id > ?2 ORDER BY seq_id LIMIT ?3"

constexpr char kSelectSteps[] =
    "SELECT seq_id, worker_id, episode_index, step_index, action_json, "
    "observation_json, reward, terminated, truncated, timestamp_ns, "
    "policy_label, backend, agent_id, render_hint_json, frame_ref, "
    "payload_version, render_payload_json, episode_seed FROM "
    "step_rows" TANDEM_OF_RUN;
constexpr char kSelectEpisodes[] =
    "SELECT seq_id, worker_id, episode_index, total_reward, steps, terminated, "
    "truncated, metadata_json, timestamp_ns, agent_id FROM "
    "episode_rows" TANDEM_OF_RUN;
constexpr char kSelectLifecycle[] =
    "SELECT seq_id, worker_id, event, payload_json, timestamp_ns FROM "
    "lifecycle_rows" TANDEM_OF_RUN;
constexpr char kSelectMalformed[] =
    "SELECT seq_id, byte_offset, bytes, reason, head FROM "
    "malformed_rows" TANDEM_OF_RUN;

#undef TANDEM_OF_RUN

constexpr char kSelectProgress[] =
    "SELECT (SELECT max(seq_id) FROM step_rows WHERE run = r.run), "
    "(SELECT max(seq_id) FROM episode_rows WHERE run = r.run), "
    "(SELECT max(seq_id) FROM lifecycle_rows WHERE run = r.run), "
    "(SELECT max(seq_id) FROM malformed_rows WHERE run = r.run), "
    "p.byte_offset, p.steps, p.episodes, p.lifecycle, p.malformed, "
    "p.text_lines, "
    "(SELECT total_reward FROM episode_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT timestamp_ns FROM step_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT timestamp_ns FROM episode_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT timestamp_ns FROM lifecycle_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1) "
    "FROM runs AS r LEFT JOIN positions AS p ON p.run = r.run "
    "WHERE r.run_id = ?1";

uint64_t Number(const Statement& row, int column) {
  return static_cast<uint64_t>(row.Int(column));
}

// The text's size, as what the row costs.
size_t SetText(const Statement& row, int column, std::string* text) {
  const absl::string_view value = row.Text(column);
  text->assign(value.data(), value.size());
  return value.size();
}

template <typename Event>
void SetTimestamp(const Statement& row, int column, Event* event) {
  if (row.IsNull(column)) return;
  constexpr int64_t kPerSecond = 1'000'000'000;
  const int64_t nanos = row.Int(column);
  int64_t seconds = nanos / kPerSecond;
  int64_t rest = nanos % kPerSecond;
  if (rest < 0) {  // a timestamp's nanos are not negative
    rest += kPerSecond;
    --seconds;
  }
  event->mutable_timestamp()->set_seconds(seconds);
  event->mutable_timestamp()->set_nanos(static_cast<int32_t>(rest));
}

// A row's columns, as of the SELECTs above; the bytes of its text.

size_t ReadRow(const Statement& row, const std::string& run_id, RunStep* step) {
  step->set_run_id(run_id);
  step->set_seq_id(Number(row, 0));
  step->set_episode_index(Number(row, 2));
  step->set_step_index(Number(row, 3));
  step->set_reward(row.Real(6));
  step->set_terminated(row.Int(7) != 0);
  step->set_truncated(row.Int(8) != 0);
  SetTimestamp(row, 9, step);
  step->set_payload_version(static_cast<uint32_t>(row.Int(15)));
  step->set_episode_seed(Number(row, 17));
  return SetText(row, 1, step->mutable_worker_id()) +
         SetText(row, 4, step->mutable_action_json()) +
         SetText(row, 5, step->mutable_observation_json()) +
         SetText(row, 10, step->mutable_policy_label()) +
         SetText(row, 11, step->mutable_backend()) +
         SetText(row, 12, step->mutable_agent_id()) +
         SetText(row, 13, step->mutable_render_hint_json()) +
         SetText(row, 14, step->mutable_frame_ref()) +
         SetText(row, 16, step->mutable_render_payload_json());
}

size_t ReadRow(const Statement& row, const std::string& run_id,
               RunEpisode* episode) {
  episode->set_run_id(run_id);
  episode->set_seq_id(Number(row, 0));
  episode->set_episode_index(Number(row, 2));
  episode->set_total_reward(row.Real(3));
  episode->set_steps(Number(row, 4));
  episode->set_terminated(row.Int(5) != 0);
  episode->set_truncated(row.Int(6) != 0);
  SetTimestamp(row, 8, episode);
  return SetText(row, 1, episode->mutable_worker_id()) +
         SetText(row, 7, episode->mutable_metadata_json()) +
         SetText(row, 9, episode->mutable_agent_id());
}

size_t ReadRow(const Statement& row, const std::string& /*run_id*/,
               v1::LifecycleEvent* event) {
  event->set_seq_id(Number(row, 0));
  SetTimestamp(row, 4, event);
  return SetText(row, 1, event->mutable_worker_id()) +
         SetText(row, 2, event->mutable_event()) +
         SetText(row, 3, event->mutable_payload_json());
}

size_t ReadRow(const Statement& row, const std::string& /*run_id*/,
               v1::MalformedLine* line) {
  line->set_seq_id(Number(row, 0));
  line->set_offset(Number(row, 1));
  line->set_length(Number(row, 2));
  return SetText(row, 3, line->mutable_reason()) +
         SetText(row, 4, line->mutable_head());
}

template <typename Event>
absl::StatusOr<size_t> ReadRows(Statement& rows, const std::string& run_id,
                                size_t max_bytes,
                                google::protobuf::RepeatedPtrField<Event>* to) {
  size_t count = 0;
  size_t bytes = 0;
  while (true) {
    absl::StatusOr<bool> more = rows.Step();
    if (!more.ok()) return more.status();
    if (!*more) return count;
    bytes += ReadRow(rows, run_id, to->Add());
    ++count;
    if (bytes > max_bytes) {
      rows.Reset();
      return count;
    }
  }
}

const char* SelectOf(Stream stream) {
  switch (stream) {
    case Stream::kSteps:
      return kSelectSteps;
    case Stream::kEpisodes:
      return kSelectEpisodes;
    case Stream::kLifecycle:
      return kSelectLifecycle;
    case Stream::kMalformed:
      return kSelectMalformed;
  }
  return kSelectSteps;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventReader>> EventReader::Open(
    const std::string& path) {
  absl::StatusOr<std::unique_ptr<Database>> database =
      Database::Open(path, {.read_only = true});
  if (!database.ok()) return database.status();
  return std::unique_ptr<EventReader>(new EventReader(*std::move(database)));
}

EventReader::EventReader(std::unique_ptr<Database> database)
    : database_(std::move(database)) {}

absl::StatusOr<size_t> EventReader::Read(const std::string& run_id,
                                         Stream stream, uint64_t since,
                                         const Limits& limits,
                                         v1::EventBatch* batch) {
  absl::StatusOr<Statement*> select = database_->Cached(SelectOf(stream));
  if (!select.ok()) return select.status();
  Statement& rows = **select;
  rows.Bind(1, run_id);
  rows.Bind(2, NearestInt64(since));
  rows.Bind(3, NearestInt64(limits.max_rows));
  absl::StatusOr<size_t> count;
  switch (stream) {
    case Stream::kSteps:
      count = ReadRows(rows, run_id, limits.max_bytes, batch->mutable_steps());
      break;
    case Stream::kEpisodes:
      count =
          ReadRows(rows, run_id, limits.max_bytes, batch->mutable_episodes());
      break;
    case Stream::kLifecycle:
      count =
          ReadRows(rows, run_id, limits.max_bytes, batch->mutable_lifecycle());
      break;
    case Stream::kMalformed:
      count =
          ReadRows(rows, run_id, limits.max_bytes, batch->mutable_malformed());
      break;
  }
  if (!count.ok() || *count > 0) return count;
  absl::StatusOr<Statement*> find =
      database_->Cached("SELECT run FROM runs WHERE run_id = ?");
  if (!find.ok()) return find.status();
  (*find)->Bind(1, run_id);
  absl::StatusOr<bool> there = (*find)->Step();
  if (!there.ok()) return there.status();
  if (!*there) return NoSuchRun(run_id);
  (*find)->Reset();
  return 0;
}

absl::StatusOr<RunProgress> EventReader::Progress(const std::string& run_id) {
  absl::StatusOr<Statement*> select = database_->Cached(kSelectProgress);
  if (!select.ok()) return select.status();
  Statement& row = **select;
  row.Bind(1, run_id);
  absl::StatusOr<bool> there = row.Step();
  if (!there.ok()) return there.status();
  if (!*there) return NoSuchRun(run_id);
  RunProgress progress;
  for (Stream stream : kAllStreams) {
    progress.last[stream] = Number(row, static_cast<int>(stream));
  }
  progress.position.set_offset(Number(row, 4));
  progress.position.set_steps(Number(row, 5));
  progress.position.set_episodes(Number(row, 6));
  progress.position.set_lifecycle(Number(row, 7));
  progress.position.set_malformed(Number(row, 8));
  progress.position.set_text_lines(Number(row, 9));
  if (progress.last[Stream::kEpisodes] > 0) progress.last_return = row.Real(10);
  for (int column : {11, 12, 13}) {
    if (row.IsNull(column)) continue;
    progress.last_event_ns = std::max(
        progress.last_event_ns.value_or(row.Int(column)), row.Int(column));
  }
  row.Reset();
  return progress;
}

}  // namespace tandem::slow_lane
