#include "slow_lane/store/batch_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "slow_lane/store/event_columns.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/run_table.h"

namespace tandem::slow_lane {
namespace {

// Limits the remembered entries; many more than are active at a time.
constexpr size_t kMaxRemembered = 10'000;

// Returns the event's worker, or else the batch's: many workers may publish
// through one call. A malformed line has no worker.
template <typename Event>
const std::string& WorkerOf(const Event& event, const std::string& of_batch) {
  if constexpr (requires { event.worker_id(); }) {
    if (!event.worker_id().empty()) return event.worker_id();
  }
  return of_batch;
}

std::array<uint64_t, 7> ValuesOf(const v1::Position& position) {
  return {position.offset(),    position.steps(),     position.episodes(),
          position.lifecycle(), position.malformed(), position.text_lines(),
          position.scalars()};
}

std::string Shown(const v1::Position& position) {
  return absl::StrCat(
      "{offset ", position.offset(), ", steps ", position.steps(),
      ", episodes ", position.episodes(), ", lifecycle ", position.lifecycle(),
      ", malformed ", position.malformed(), ", text lines ",
      position.text_lines(), ", scalars ", position.scalars(), "}");
}

Numbers NumbersOf(const v1::Position& position) {
  Numbers numbers;
  numbers[Stream::kSteps] = position.steps();
  numbers[Stream::kEpisodes] = position.episodes();
  numbers[Stream::kLifecycle] = position.lifecycle();
  numbers[Stream::kMalformed] = position.malformed();
  numbers[Stream::kScalars] = position.scalars();
  return numbers;
}

// Parameters as of EventColumns::insert: 1 run, 2 seq_id, 4 worker_id. A name
// that an event has twice keeps the later number, as JSON's readers do.
constexpr char kInsertScalar[] =
    "INSERT OR REPLACE INTO scalar_rows (run, seq_id, step, worker_id, "
    "timestamp_ns, name_id, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

absl::Status CheckPositions(const v1::EventBatch& batch,
                            const v1::Position& stored) {
  if (batch.has_begin() != batch.has_end() ||
      !std::ranges::equal(ValuesOf(batch.end()), ValuesOf(batch.begin()),
                          std::greater_equal())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of run ", Quoted(batch.run_id()),
        ": expected begin and end, or neither, and no end before its begin; "
        "found begin ",
        batch.has_begin() ? Shown(batch.begin()) : "missing", " and end ",
        batch.has_end() ? Shown(batch.end()) : "missing"));
  }
  if (batch.has_begin() && ValuesOf(batch.begin()) != ValuesOf(stored)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a batch of run ", Quoted(batch.run_id()),
        ": expected it to begin where the run's events end, at ", Shown(stored),
        "; it begins at ", Shown(batch.begin()),
        "; say hello again and go on from the welcome's position"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchWriter::Run*> BatchWriter::Find(const std::string& run_id) {
  auto found = runs_.find(run_id);
  if (found != runs_.end()) return &found->second;
  TANDEM_ASSIGN_OR_RETURN(const int64_t run, FindRun(*database_, run_id));
  TANDEM_ASSIGN_OR_RETURN(const RunProgress progress,
                          ReadProgress(*database_, run_id));
  if (runs_.size() >= kMaxRemembered) runs_.clear();
  return &(runs_[run_id] = {.run = run,
                            .last = progress.last,
                            .position = progress.position,
                            .sources = {},
                            .names = {}});
}

absl::StatusOr<Numbers*> BatchWriter::FindSource(Run* run,
                                                 const std::string& worker_id) {
  auto found = run->sources.find(worker_id);
  if (found != run->sources.end()) return &found->second;
  Numbers numbers;
  TANDEM_RETURN_IF_ERROR(database_->ForEachRow(
      "SELECT steps, episodes, lifecycle, malformed, scalars FROM sources "
      "WHERE run = ? AND worker_id = ?",
      [&numbers](const Statement& row) {
        numbers = ReadNumbers(row);
        return true;
      },
      run->run, worker_id));
  if (run->sources.size() >= kMaxRemembered) run->sources.clear();
  return &(run->sources[worker_id] = numbers);
}

template <typename Event>
absl::Status BatchWriter::WriteEvents(
    Stream stream, const google::protobuf::RepeatedPtrField<Event>& events,
    const std::string& worker_id, Run* run, Numbers* source,
    Appended* appended) {
  if (events.empty()) return absl::OkStatus();
  constexpr bool kIsScalars = std::is_same_v<Event, v1::Scalars>;
  absl::string_view sql = kInsertScalar;
  if constexpr (!kIsScalars) sql = EventColumns::Of<Event>().insert();
  TANDEM_ASSIGN_OR_RETURN(Statement* const insert, database_->Cached(sql));
  uint64_t seq_id = run->last[stream];
  uint64_t last_number = (*source)[stream];
  uint64_t duplicate = 0;
  uint64_t dropped = 0;
  insert->Bind(1, run->run);
  for (const Event& event : events) {
    const uint64_t number = event.seq_id();
    if (number != 0) {
      if (number <= last_number) {
        ++duplicate;
        continue;
      }
      last_number = number;
    }
    insert->Bind(2, seq_id + 1);
    insert->BindTextOrNull(4, WorkerOf(event, worker_id));
    bool is_stored = true;
    if constexpr (kIsScalars) {
      TANDEM_ASSIGN_OR_RETURN(is_stored,
                              WriteNumbers(event, run, insert, &dropped));
    } else {
      insert->Bind(3, number);
      EventColumns::Of<Event>().Bind(event, insert);
      TANDEM_RETURN_IF_ERROR(insert->Run());
    }
    if (is_stored) ++seq_id;
  }
  if (dropped > 0) {
    TANDEM_RETURN_IF_ERROR(database_->Run(
        "UPDATE runs SET dropped_scalars = dropped_scalars + ?2 WHERE run = ?1",
        run->run, dropped));
  }
  appended->added[stream] = seq_id - run->last[stream];
  appended->duplicate[stream] = duplicate;
  run->last[stream] = seq_id;
  (*source)[stream] = last_number;
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchWriter::WriteNumbers(const v1::Scalars& event,
                                               Run* run, Statement* insert,
                                               uint64_t* dropped) {
  if (event.names_size() != event.values_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "scalars: expected a value for each name, found ", event.names_size(),
        " names and ", event.values_size(), " values"));
  }
  insert->Bind(3, event.step());
  insert->Bind(5, event.has_timestamp()
                      ? std::optional(NanosOf(event.timestamp()))
                      : std::nullopt);
  bool has_rows = false;
  for (int i = 0; i < event.names_size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t name_id,
                            FindName(run, event.names(i)));
    if (name_id == 0) {
      ++*dropped;
      continue;
    }
    insert->Bind(6, name_id);
    insert->Bind(7, event.values(i));
    TANDEM_RETURN_IF_ERROR(insert->Run());
    has_rows = true;
  }
  return has_rows;
}

absl::StatusOr<int64_t> BatchWriter::FindName(Run* run,
                                              const std::string& name) {
  if (run->names.empty()) {
    TANDEM_RETURN_IF_ERROR(database_->ForEachRow(
        "SELECT name, name_id FROM scalar_names WHERE run = ?",
        [run](const Statement& row) {
          run->names.emplace(row.Text(0), row.Int(1));
          return true;
        },
        run->run));
  }
  const auto found = run->names.find(name);
  if (found != run->names.end()) return found->second;
  if (run->names.size() >= kMostScalarNames) return 0;
  const auto name_id = static_cast<int64_t>(run->names.size()) + 1;
  TANDEM_RETURN_IF_ERROR(database_->Run(
      "INSERT INTO scalar_names (run, name_id, name) VALUES (?, ?, ?)",
      run->run, name_id, name));
  run->names.emplace(name, name_id);
  return name_id;
}

absl::StatusOr<Appended> BatchWriter::Write(const v1::EventBatch& batch) {
  absl::StatusOr<Appended> appended = WriteBatch(batch);
  // The remembered data of the run may include the rolled back rows.
  if (!appended.ok()) runs_.erase(batch.run_id());
  return appended;
}

absl::StatusOr<Appended> BatchWriter::WriteBatch(const v1::EventBatch& batch) {
  TANDEM_ASSIGN_OR_RETURN(Run* const run, Find(batch.run_id()));
  TANDEM_RETURN_IF_ERROR(CheckPositions(batch, run->position));
  const std::string& worker = batch.worker_id();
  // The position identifies printed events. Their numbers are independent of
  // those that a worker of the same name publishes.
  Numbers printed = NumbersOf(run->position);
  Numbers* source = &printed;
  if (!batch.has_begin()) {
    TANDEM_ASSIGN_OR_RETURN(source, FindSource(run, worker));
  }
  const Numbers before = *source;

  Appended appended;
  for (const Stream stream : kAllStreams) {
    TANDEM_RETURN_IF_ERROR(VisitEvents(stream, batch, [&](const auto& events) {
      return WriteEvents(stream, events, worker, run, source, &appended);
    }));
  }

  if (source != &printed && !(*source == before)) {
    TANDEM_RETURN_IF_ERROR(database_->Run(
        "INSERT OR REPLACE INTO sources (run, worker_id, steps, episodes, "
        "lifecycle, malformed, scalars) VALUES (?, ?, ?, ?, ?, ?, ?)",
        run->run, worker, (*source)[Stream::kSteps],
        (*source)[Stream::kEpisodes], (*source)[Stream::kLifecycle],
        (*source)[Stream::kMalformed], (*source)[Stream::kScalars]));
  }
  if (batch.has_end()) {
    const v1::Position& end = batch.end();
    TANDEM_RETURN_IF_ERROR(database_->Run(
        "INSERT OR REPLACE INTO positions (run, byte_offset, steps, episodes, "
        "lifecycle, malformed, text_lines, scalars) VALUES (?, ?, ?, ?, ?, ?, "
        "?, ?)",
        run->run, end.offset(), end.steps(), end.episodes(), end.lifecycle(),
        end.malformed(), end.text_lines(), end.scalars()));
    run->position = end;
  }
  appended.last = run->last;
  appended.printed_steps = run->position.steps();
  return appended;
}

}  // namespace tandem::slow_lane
