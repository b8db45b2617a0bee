#include "slow_lane/store/event_reader.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

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
    "(SELECT max(seq_id) FROM scalar_rows WHERE run = r.run), "
    "p.byte_offset, p.steps, p.episodes, p.lifecycle, p.malformed, "
    "p.text_lines, p.scalars, r.dropped_scalars, r.run, "
    "(SELECT total_reward FROM episode_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT max(episodes) FROM attempt_rows WHERE run = r.run), "
    "(SELECT timestamp_ns FROM step_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT timestamp_ns FROM episode_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT timestamp_ns FROM lifecycle_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1), "
    "(SELECT timestamp_ns FROM scalar_rows WHERE run = r.run "
    "ORDER BY seq_id DESC LIMIT 1) "
    "FROM runs AS r LEFT JOIN positions AS p ON p.run = r.run "
    "WHERE r.run_id = ?1";

// NULL is 0.
uint64_t Number(const Statement& row, int column) {
  return static_cast<uint64_t>(row.Int(column));
}

// A row has one number of an event.
constexpr char kSelectScalars[] =
    "SELECT seq_id, step, value, timestamp_ns, worker_id, name FROM "
    "scalar_rows "
    "AS s CROSS JOIN scalar_names AS n WHERE s.run = (SELECT run FROM runs "
    "WHERE run_id = ?1) AND seq_id > ?2 AND n.run = s.run AND n.name_id = "
    "s.name_id ORDER BY seq_id, s.name_id";

// Complete events only: their rows end where the next event begins.
absl::Status ReadRows(Database& database, const std::string& run_id,
                      uint64_t since, const EventReader::Limits& limits,
                      google::protobuf::RepeatedPtrField<v1::Scalars>& to) {
  size_t events = 0;
  size_t bytes = 0;
  v1::Scalars* event = nullptr;
  return database.ForEachRow(
      kSelectScalars,
      [&](const Statement& row) {
        if (event == nullptr || event->seq_id() != Number(row, 0)) {
          if (events == limits.max_rows || bytes > limits.max_bytes) {
            return false;
          }
          ++events;
          event = to.Add();
          event->set_seq_id(Number(row, 0));
          event->set_step(Number(row, 1));
          if (!row.IsNull(3)) {
            *event->mutable_timestamp() =
                google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
                    row.Int(3));
          }
          event->set_worker_id(std::string(row.Text(4)));
        }
        const absl::string_view name = row.Text(5);
        event->add_names(name.data(), name.size());
        event->add_values(row.Real(2));
        bytes += name.size() + sizeof(double);
        return true;
      },
      run_id, NearestInt64(since));
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

absl::StatusOr<LastReturns> EventReader::Returns(const RunProgress& progress) {
  constexpr size_t kMostSeen = 100'000;
  if (returns_.size() > kMostSeen) returns_.clear();
  SeenReturns& seen = returns_[progress.run];
  const uint64_t before = progress.episodes_before;
  const uint64_t episodes = progress.last[Stream::kEpisodes];
  if (seen.before == before && seen.episodes == episodes) return seen.returns;
  std::vector<double> values;
  TANDEM_RETURN_IF_ERROR(database_->ForEachRow(
      "SELECT total_reward FROM episode_rows WHERE run = ? AND seq_id > ? AND "
      "seq_id <= ? ORDER BY seq_id DESC LIMIT ?",
      [&values](const Statement& row) {
        values.push_back(row.Real(0));
        return true;
      },
      progress.run, before, episodes, LastReturns::kMost));
  const auto count = static_cast<double>(values.size());
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / std::max(count, 1.0);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  seen = {before,
          episodes,
          {.count = static_cast<uint32_t>(values.size()),
           .mean = mean,
           .deviation = count < 2 ? 0 : std::sqrt(squares / (count - 1))}};
  return seen.returns;
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
        position.set_offset(Number(row, 5));
        position.set_steps(Number(row, 6));
        position.set_episodes(Number(row, 7));
        position.set_lifecycle(Number(row, 8));
        position.set_malformed(Number(row, 9));
        position.set_text_lines(Number(row, 10));
        position.set_scalars(Number(row, 11));
        progress->dropped_scalars = Number(row, 12);
        progress->run = row.Int(13);
        progress->episodes_before = Number(row, 15);
        if (progress->last[Stream::kEpisodes] > progress->episodes_before) {
          progress->last_return = row.Real(14);
        }
        for (const int column : {16, 17, 18, 19}) {
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
