#include "slow_lane/store/event_reader.h"

#include <algorithm>

#include "base/error.h"
#include "slow_lane/runs/run_id.h"
#include "slow_lane/store/event_columns.h"
#include "slow_lane/store/run_table.h"

namespace tandem::slow_lane {
namespace {

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

// NULL is 0.
uint64_t Number(const Statement& row, int column) {
  return static_cast<uint64_t>(row.Int(column));
}

template <typename Event>
absl::Status ReadRows(Database& database, const std::string& run_id,
                      uint64_t since, const EventReader::Limits& limits,
                      google::protobuf::RepeatedPtrField<Event>& to) {
  const EventColumns& columns = EventColumns::Of<Event>();
  size_t bytes = 0;
  return database.ForEachRow(
      columns.select(),
      [&](const Statement& row) {
        Event* const event = to.Add();
        if constexpr (requires { event->run_id(); }) event->set_run_id(run_id);
        bytes += columns.Read(row, event);
        return bytes <= limits.max_bytes;
      },
      run_id, NearestInt64(since), NearestInt64(limits.max_rows));
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventReader>> EventReader::Open(
    const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                          Database::Open(path, {.read_only = true}));
  return std::unique_ptr<EventReader>(new EventReader(std::move(database)));
}

absl::StatusOr<size_t> EventReader::Read(const std::string& run_id,
                                         Stream stream, uint64_t since,
                                         const Limits& limits,
                                         v1::EventBatch* batch) {
  return VisitEvents(
      stream, *batch, [&](auto& events) -> absl::StatusOr<size_t> {
        const int before = events.size();
        TANDEM_RETURN_IF_ERROR(
            ReadRows(*database_, run_id, since, limits, events));
        if (events.size() > before) {
          return static_cast<size_t>(events.size() - before);
        }
        // No rows: checks whether the run exists.
        TANDEM_RETURN_IF_ERROR(FindRun(*database_, run_id).status());
        return 0;
      });
}

absl::StatusOr<RunProgress> ReadProgress(Database& database,
                                         const std::string& run_id) {
  std::optional<RunProgress> progress;
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      kSelectProgress,
      [&progress](const Statement& row) {
        progress.emplace();
        progress->last = ReadNumbers(row);
        v1::Position& position = progress->position;
        position.set_offset(Number(row, 4));
        position.set_steps(Number(row, 5));
        position.set_episodes(Number(row, 6));
        position.set_lifecycle(Number(row, 7));
        position.set_malformed(Number(row, 8));
        position.set_text_lines(Number(row, 9));
        if (progress->last[Stream::kEpisodes] > 0) {
          progress->last_return = row.Real(10);
        }
        for (const int column : {11, 12, 13}) {
          if (row.IsNull(column)) continue;
          progress->last_event_ns =
              std::max(progress->last_event_ns.value_or(row.Int(column)),
                       row.Int(column));
        }
        return true;
      },
      run_id));
  if (!progress.has_value()) return NoSuchRun(run_id);
  return *std::move(progress);
}

}  // namespace tandem::slow_lane
