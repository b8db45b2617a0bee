#include "slow_lane/store/batch_writer.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/timestamp.pb.h"
#include "slow_lane/runs/run_id.h"
#include "transport/base/quoted.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RunEpisode;
using gymgui::trainer::RunStep;

// Bounds what is remembered; far more than what is active at a time.
constexpr size_t kMaxRemembered = 10'000;

// The columns of each table behind (run, seq_id, source_number, worker_id), in
// the order in which BindFields binds them.
constexpr char kInsertStep[] =
    "INSERT INTO step_rows (run, seq_id, source_number, worker_id, "
    "episode_index, step_index, action_json, observation_json, reward, "
    "terminated, truncated, timestamp_ns, policy_label, backend, agent_id, "
    "render_hint_json, frame_ref, payload_version, render_payload_json, "
    "episode_seed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
    "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";
constexpr char kInsertEpisode[] =
    "INSERT INTO episode_rows (run, seq_id, source_number, worker_id, "
    "episode_index, total_reward, steps, terminated, truncated, metadata_json, "
    "timestamp_ns, agent_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
    "?11, ?12)";
constexpr char kInsertLifecycle[] =
    "INSERT INTO lifecycle_rows (run, seq_id, source_number, worker_id, event, "
    "payload_json, timestamp_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
constexpr char kInsertMalformed[] =
    "INSERT INTO malformed_rows (run, seq_id, source_number, worker_id, "
    "byte_offset, bytes, reason, head) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "
    "?8)";

// From 1677 to 2262; what lies outside becomes the nearer end.
int64_t NanosOf(const google::protobuf::Timestamp& time) {
  constexpr int64_t kPerSecond = 1'000'000'000;
  int64_t nanos;
  if (__builtin_mul_overflow(time.seconds(), kPerSecond, &nanos) ||
      __builtin_add_overflow(nanos, int64_t{time.nanos()}, &nanos)) {
    return time.seconds() < 0 ? std::numeric_limits<int64_t>::min()
                              : std::numeric_limits<int64_t>::max();
  }
  return nanos;
}

template <typename Event>
void BindTimestamp(Statement& insert, int parameter, const Event& event) {
  if (event.has_timestamp()) {
    insert.Bind(parameter, NanosOf(event.timestamp()));
  } else {
    insert.Bind(parameter, nullptr);
  }
}

void BindFields(Statement& insert, const RunStep& step) {
  insert.Bind(5, step.episode_index());
  insert.Bind(6, step.step_index());
  insert.BindTextOrNull(7, step.action_json());
  insert.BindTextOrNull(8, step.observation_json());
  insert.Bind(9, step.reward());
  insert.Bind(10, step.terminated());
  insert.Bind(11, step.truncated());
  BindTimestamp(insert, 12, step);
  insert.BindTextOrNull(13, step.policy_label());
  insert.BindTextOrNull(14, step.backend());
  insert.BindTextOrNull(15, step.agent_id());
  insert.BindTextOrNull(16, step.render_hint_json());
  insert.BindTextOrNull(17, step.frame_ref());
  insert.Bind(18, step.payload_version());
  insert.BindTextOrNull(19, step.render_payload_json());
  insert.Bind(20, step.episode_seed());
}

void BindFields(Statement& insert, const RunEpisode& episode) {
  insert.Bind(5, episode.episode_index());
  insert.Bind(6, episode.total_reward());
  insert.Bind(7, episode.steps());
  insert.Bind(8, episode.terminated());
  insert.Bind(9, episode.truncated());
  insert.BindTextOrNull(10, episode.metadata_json());
  BindTimestamp(insert, 11, episode);
  insert.BindTextOrNull(12, episode.agent_id());
}

void BindFields(Statement& insert, const v1::LifecycleEvent& event) {
  insert.BindTextOrNull(5, event.event());
  insert.BindTextOrNull(6, event.payload_json());
  BindTimestamp(insert, 7, event);
}

void BindFields(Statement& insert, const v1::MalformedLine& line) {
  insert.Bind(5, line.offset());
  insert.Bind(6, line.length());
  insert.BindTextOrNull(7, line.reason());
  insert.BindTextOrNull(8, line.head());
}

// An event may say another worker than its batch, such as one of many that
// publish through one. A malformed line says none.
template <typename Event>
const std::string& WorkerOf(const Event& event, const std::string& of_batch) {
  return event.worker_id().empty() ? of_batch : event.worker_id();
}
const std::string& WorkerOf(const v1::MalformedLine& /*line*/,
                            const std::string& of_batch) {
  return of_batch;
}

bool Same(const v1::Position& a, const v1::Position& b) {
  return a.offset() == b.offset() && a.steps() == b.steps() &&
         a.episodes() == b.episodes() && a.lifecycle() == b.lifecycle() &&
         a.malformed() == b.malformed() && a.text_lines() == b.text_lines();
}

bool NotBefore(const v1::Position& end, const v1::Position& begin) {
  return end.offset() >= begin.offset() && end.steps() >= begin.steps() &&
         end.episodes() >= begin.episodes() &&
         end.lifecycle() >= begin.lifecycle() &&
         end.malformed() >= begin.malformed() &&
         end.text_lines() >= begin.text_lines();
}

std::string Shown(const v1::Position& position) {
  return absl::StrCat("{offset ", position.offset(), ", steps ",
                      position.steps(), ", episodes ", position.episodes(),
                      ", lifecycle ", position.lifecycle(), ", malformed ",
                      position.malformed(), ", text lines ",
                      position.text_lines(), "}");
}

Numbers NumbersOf(const v1::Position& position) {
  Numbers numbers;
  numbers[Stream::kSteps] = position.steps();
  numbers[Stream::kEpisodes] = position.episodes();
  numbers[Stream::kLifecycle] = position.lifecycle();
  numbers[Stream::kMalformed] = position.malformed();
  return numbers;
}

absl::Status CheckPositions(const v1::EventBatch& batch,
                            const v1::Position& stored) {
  if (batch.has_begin() != batch.has_end() ||
      !NotBefore(batch.end(), batch.begin())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of run ", Quoted(batch.run_id()),
        ": expected begin and end, or neither, and no end before its begin; "
        "found begin ",
        batch.has_begin() ? Shown(batch.begin()) : "missing", " and end ",
        batch.has_end() ? Shown(batch.end()) : "missing"));
  }
  if (batch.has_begin() && !Same(batch.begin(), stored)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a batch of run ", Quoted(batch.run_id()),
        ": expected it to begin where the run's events end, at ", Shown(stored),
        "; it begins at ", Shown(batch.begin()),
        "; say hello again and go on from the welcome's position"));
  }
  return absl::OkStatus();
}

}  // namespace

struct BatchWriter::Statements {
  Statement insert_step;
  Statement insert_episode;
  Statement insert_lifecycle;
  Statement insert_malformed;
  Statement find_run;
  Statement last_numbers;
  Statement find_position;
  Statement find_source;
  Statement put_position;
  Statement put_source;

  Statement& insert(const RunStep&) { return insert_step; }
  Statement& insert(const RunEpisode&) { return insert_episode; }
  Statement& insert(const v1::LifecycleEvent&) { return insert_lifecycle; }
  Statement& insert(const v1::MalformedLine&) { return insert_malformed; }
};

absl::StatusOr<std::unique_ptr<BatchWriter>> BatchWriter::Make(
    Database* database) {
  absl::Status status;
  auto prepare = [&](const char* sql) {
    absl::StatusOr<Statement> statement = database->Prepare(sql);
    if (statement.ok()) return *std::move(statement);
    status = statement.status();
    return Statement();
  };
  // Braces: in this order.
  std::unique_ptr<Statements> statements(new Statements{
      prepare(kInsertStep),
      prepare(kInsertEpisode),
      prepare(kInsertLifecycle),
      prepare(kInsertMalformed),
      prepare("SELECT run FROM runs WHERE run_id = ?"),
      prepare("SELECT (SELECT max(seq_id) FROM step_rows WHERE run = ?1), "
              "(SELECT max(seq_id) FROM episode_rows WHERE run = ?1), "
              "(SELECT max(seq_id) FROM lifecycle_rows WHERE run = ?1), "
              "(SELECT max(seq_id) FROM malformed_rows WHERE run = ?1)"),
      prepare("SELECT byte_offset, steps, episodes, lifecycle, malformed, "
              "text_lines FROM positions WHERE run = ?"),
      prepare("SELECT steps, episodes, lifecycle, malformed FROM sources "
              "WHERE run = ? AND worker_id = ?"),
      prepare("INSERT OR REPLACE INTO positions (run, byte_offset, steps, "
              "episodes, lifecycle, malformed, text_lines) "
              "VALUES (?, ?, ?, ?, ?, ?, ?)"),
      prepare("INSERT OR REPLACE INTO sources (run, worker_id, steps, "
              "episodes, lifecycle, malformed) VALUES (?, ?, ?, ?, ?, ?)"),
  });
  if (!status.ok()) return status;
  return std::unique_ptr<BatchWriter>(new BatchWriter(std::move(statements)));
}

BatchWriter::BatchWriter(std::unique_ptr<Statements> statements)
    : statements_(std::move(statements)) {}

BatchWriter::~BatchWriter() = default;

absl::StatusOr<BatchWriter::Run*> BatchWriter::Find(const std::string& run_id) {
  auto found = runs_.find(run_id);
  if (found != runs_.end()) return &found->second;
  absl::StatusOr<Run> run = Load(run_id);
  if (!run.ok()) return run.status();
  if (runs_.size() >= kMaxRemembered) runs_.clear();
  return &(runs_[run_id] = *std::move(run));
}

absl::StatusOr<BatchWriter::Run> BatchWriter::Load(const std::string& run_id) {
  Run run;
  Statement& find = statements_->find_run;
  find.Bind(1, run_id);
  absl::StatusOr<bool> row = find.Step();
  if (!row.ok()) return row.status();
  if (!*row) return NoSuchRun(run_id);
  run.run = find.Int(0);
  find.Reset();

  Statement& last = statements_->last_numbers;
  last.Bind(1, run.run);
  row = last.Step();
  if (!row.ok()) return row.status();
  for (Stream stream : kAllStreams) {
    run.last[stream] =
        static_cast<uint64_t>(last.Int(static_cast<int>(stream)));
  }
  last.Reset();

  Statement& position = statements_->find_position;
  position.Bind(1, run.run);
  row = position.Step();
  if (!row.ok()) return row.status();
  if (*row) {
    run.position.set_offset(static_cast<uint64_t>(position.Int(0)));
    run.position.set_steps(static_cast<uint64_t>(position.Int(1)));
    run.position.set_episodes(static_cast<uint64_t>(position.Int(2)));
    run.position.set_lifecycle(static_cast<uint64_t>(position.Int(3)));
    run.position.set_malformed(static_cast<uint64_t>(position.Int(4)));
    run.position.set_text_lines(static_cast<uint64_t>(position.Int(5)));
    position.Reset();
  }
  return run;
}

absl::StatusOr<Numbers*> BatchWriter::FindSource(Run* run,
                                                 const std::string& worker_id) {
  auto found = run->sources.find(worker_id);
  if (found != run->sources.end()) return &found->second;
  Numbers numbers;
  Statement& find = statements_->find_source;
  find.Bind(1, run->run);
  find.Bind(2, worker_id);
  absl::StatusOr<bool> row = find.Step();
  if (!row.ok()) return row.status();
  if (*row) {
    for (Stream stream : kAllStreams) {
      numbers[stream] =
          static_cast<uint64_t>(find.Int(static_cast<int>(stream)));
    }
    find.Reset();
  }
  if (run->sources.size() >= kMaxRemembered) run->sources.clear();
  return &(run->sources[worker_id] = numbers);
}

template <typename Event>
absl::Status BatchWriter::WriteEvents(
    Stream stream, const google::protobuf::RepeatedPtrField<Event>& events,
    const std::string& worker_id, Run* run, Numbers* source,
    Appended* appended) {
  if (events.empty()) return absl::OkStatus();
  Statement& insert = statements_->insert(events[0]);
  uint64_t seq_id = run->last[stream];
  uint64_t last_number = (*source)[stream];
  uint64_t duplicate = 0;
  insert.Bind(1, run->run);
  for (const Event& event : events) {
    const uint64_t number = event.seq_id();
    if (number != 0) {
      if (number <= last_number) {
        ++duplicate;
        continue;
      }
      last_number = number;
    }
    insert.Bind(2, ++seq_id);
    insert.Bind(3, number);
    insert.BindTextOrNull(4, WorkerOf(event, worker_id));
    BindFields(insert, event);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  appended->added[stream] = seq_id - run->last[stream];
  appended->duplicate[stream] = duplicate;
  run->last[stream] = seq_id;
  (*source)[stream] = last_number;
  return absl::OkStatus();
}

absl::StatusOr<Appended> BatchWriter::Write(const v1::EventBatch& batch) {
  absl::StatusOr<Appended> appended = WriteBatch(batch);
  // What is remembered of the run may include what is rolled back now.
  if (!appended.ok()) runs_.erase(batch.run_id());
  return appended;
}

absl::StatusOr<Appended> BatchWriter::WriteBatch(const v1::EventBatch& batch) {
  absl::StatusOr<Run*> found = Find(batch.run_id());
  if (!found.ok()) return found.status();
  Run* run = *found;
  absl::Status status = CheckPositions(batch, run->position);
  if (!status.ok()) return status;
  const std::string& worker = batch.worker_id();
  // What was printed is known by the position. Its numbers say nothing of those
  // that a worker of the same name publishes.
  Numbers printed = NumbersOf(run->position);
  Numbers* source = &printed;
  if (!batch.has_begin()) {
    absl::StatusOr<Numbers*> published = FindSource(run, worker);
    if (!published.ok()) return published.status();
    source = *published;
  }
  const Numbers before = *source;

  Appended appended;
  auto write = [&](Stream stream, const auto& events) {
    if (!status.ok()) return;
    status = WriteEvents(stream, events, worker, run, source, &appended);
  };
  write(Stream::kSteps, batch.steps());
  write(Stream::kEpisodes, batch.episodes());
  write(Stream::kLifecycle, batch.lifecycle());
  write(Stream::kMalformed, batch.malformed());
  if (!status.ok()) return status;

  if (source != &printed && !(*source == before)) {
    status = statements_->put_source.Run(
        run->run, worker, (*source)[Stream::kSteps],
        (*source)[Stream::kEpisodes], (*source)[Stream::kLifecycle],
        (*source)[Stream::kMalformed]);
    if (!status.ok()) return status;
  }
  if (batch.has_end()) {
    const v1::Position& end = batch.end();
    status = statements_->put_position.Run(run->run, end.offset(), end.steps(),
                                           end.episodes(), end.lifecycle(),
                                           end.malformed(), end.text_lines());
    if (!status.ok()) return status;
    run->position = end;
  }
  appended.last = run->last;
  appended.printed_steps = run->position.steps();
  return appended;
}

}  // namespace tandem::slow_lane
