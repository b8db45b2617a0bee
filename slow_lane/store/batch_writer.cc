#include "slow_lane/store/batch_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

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

std::array<uint64_t, 6> ValuesOf(const v1::Position& position) {
  return {position.offset(),    position.steps(),     position.episodes(),
          position.lifecycle(), position.malformed(), position.text_lines()};
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
                            .sources = {}});
}

absl::StatusOr<Numbers*> BatchWriter::FindSource(Run* run,
                                                 const std::string& worker_id) {
  auto found = run->sources.find(worker_id);
  if (found != run->sources.end()) return &found->second;
  Numbers numbers;
  TANDEM_RETURN_IF_ERROR(database_->ForEachRow(
      "SELECT steps, episodes, lifecycle, malformed FROM sources WHERE run = ? "
      "AND worker_id = ?",
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
  const EventColumns& columns = EventColumns::Of<Event>();
  TANDEM_ASSIGN_OR_RETURN(Statement* const insert,
                          database_->Cached(columns.insert()));
  uint64_t seq_id = run->last[stream];
  uint64_t last_number = (*source)[stream];
  uint64_t duplicate = 0;
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
    insert->Bind(2, ++seq_id);
    insert->Bind(3, number);
    insert->BindTextOrNull(4, WorkerOf(event, worker_id));
    columns.Bind(event, insert);
    TANDEM_RETURN_IF_ERROR(insert->Run());
  }
  appended->added[stream] = seq_id - run->last[stream];
  appended->duplicate[stream] = duplicate;
  run->last[stream] = seq_id;
  (*source)[stream] = last_number;
  return absl::OkStatus();
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
        "lifecycle, malformed) VALUES (?, ?, ?, ?, ?, ?)",
        run->run, worker, (*source)[Stream::kSteps],
        (*source)[Stream::kEpisodes], (*source)[Stream::kLifecycle],
        (*source)[Stream::kMalformed]));
  }
  if (batch.has_end()) {
    const v1::Position& end = batch.end();
    TANDEM_RETURN_IF_ERROR(database_->Run(
        "INSERT OR REPLACE INTO positions (run, byte_offset, steps, episodes, "
        "lifecycle, malformed, text_lines) VALUES (?, ?, ?, ?, ?, ?, ?)",
        run->run, end.offset(), end.steps(), end.episodes(), end.lifecycle(),
        end.malformed(), end.text_lines()));
    run->position = end;
  }
  appended.last = run->last;
  appended.printed_steps = run->position.steps();
  return appended;
}

}  // namespace tandem::slow_lane
