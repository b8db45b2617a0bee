#include "slow_lane/store/run_table.h"

#include <google/protobuf/util/time_util.h>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "nlohmann/json.hpp"
#include "slow_lane/runs/run_id.h"

namespace tandem::slow_lane {
namespace {

using google::protobuf::util::TimeUtil;
using gymgui::trainer::RunStatus;

// Returns a JSON list, such as [0,1].
std::string JsonOf(const std::vector<int32_t>& slots) {
  return nlohmann::json(slots).dump();
}

std::vector<int32_t> SlotsOf(absl::string_view text) {
  std::vector<int32_t> slots;
  for (const auto& slot : nlohmann::json::parse(text, nullptr, false)) {
    if (slot.is_number_integer()) slots.push_back(slot.get<int32_t>());
  }
  return slots;
}

std::optional<std::string> OptionalText(const Statement& statement,
                                        int column) {
  if (statement.IsNull(column)) return std::nullopt;
  return std::string(statement.Text(column));
}

// Adds the run's state to run_updates, and writes it into runs.
absl::Status WriteUpdate(Database& database, int64_t number, RunRow* run) {
  const std::string slots = JsonOf(run->gpu_slots);
  TANDEM_RETURN_IF_ERROR(database.Run(
      "INSERT INTO run_updates (run, status, failure_reason, gpu_slots, at_ns) "
      "VALUES (?, ?, ?, ?, ?)",
      number, run->status, run->failure_reason, slots, run->updated_at_ns));
  run->update_seq =
      static_cast<uint64_t>(sqlite3_last_insert_rowid(database.connection()));
  return database.Run(
      "UPDATE runs SET status = ?2, failure_reason = ?3, gpu_slots = ?4, "
      "updated_at_ns = ?5, update_seq = ?6 WHERE run = ?1",
      number, run->status, run->failure_reason, slots, run->updated_at_ns,
      run->update_seq);
}

}  // namespace

absl::StatusOr<int64_t> FindRun(Database& database, const std::string& run_id) {
  absl::StatusOr<int64_t> number = NoSuchRun(run_id);
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      "SELECT run FROM runs WHERE run_id = ?",
      [&number](const Statement& row) {
        number = row.Int(0);
        return true;
      },
      run_id));
  return number;
}

absl::Status InsertRun(Database& database, RunRow* run) {
  const absl::Status status = database.Run(
      "INSERT INTO runs (run_id, run_name, config_json, digest, token, status, "
      "gpu_slots, created_at_ns, updated_at_ns, update_seq, cancel_requested, "
      "proxy_starts, worker_pid, worker_start_time, worker_boot_id, "
      "last_beat_at_ns) VALUES (?, ?, ?, ?, ?, 0, '[]', ?, 0, 0, ?, ?, ?, ?, "
      "?, ?)",
      run->run_id, run->run_name, run->config_json, run->digest, run->token,
      run->created_at_ns, run->cancel_requested, run->proxy_starts,
      run->worker.pid(), run->worker.start_time(), run->worker.boot_id(),
      run->last_beat_at_ns);
  if (absl::IsAlreadyExists(status)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "expected a new run_id, found one that is taken: ", Quoted(run->run_id),
        "; leave it empty to get one"));
  }
  if (!status.ok()) return status;
  return WriteUpdate(database, sqlite3_last_insert_rowid(database.connection()),
                     run);
}

absl::Status SaveRun(Database& database, const RunRow& run) {
  TANDEM_RETURN_IF_ERROR(database.Run(
      "UPDATE runs SET cancel_requested = ?2, proxy_starts = ?3, worker_pid = "
      "?4, worker_start_time = ?5, worker_boot_id = ?6, last_beat_at_ns = ?7, "
      "gpu_slots = ?8, attempt = ?9 WHERE run_id = ?1",
      run.run_id, run.cancel_requested, run.proxy_starts, run.worker.pid(),
      run.worker.start_time(), run.worker.boot_id(), run.last_beat_at_ns,
      JsonOf(run.gpu_slots), run.attempt));
  if (sqlite3_changes(database.connection()) == 0) return NoSuchRun(run.run_id);
  if (run.attempt_started_ns == 0) return absl::OkStatus();
  // The first write of an attempt, before its worker's launch, counts the rows.
  return database.Run(
      "INSERT INTO attempt_rows SELECT run, ?2, ?3, ?4, ?5, "
      "(SELECT ifnull(max(seq_id), 0) FROM step_rows WHERE run = r.run), "
      "(SELECT ifnull(max(seq_id), 0) FROM episode_rows WHERE run = r.run), "
      "(SELECT ifnull(max(seq_id), 0) FROM lifecycle_rows WHERE run = r.run), "
      "(SELECT ifnull(max(seq_id), 0) FROM malformed_rows WHERE run = r.run), "
      "(SELECT ifnull(max(seq_id), 0) FROM scalar_rows WHERE run = r.run), "
      "(SELECT ifnull(max(steps), 0) FROM positions WHERE run = r.run) "
      "FROM runs AS r WHERE run_id = ?1 ON CONFLICT (run, number) DO UPDATE "
      "SET ended_ns = excluded.ended_ns, reason = excluded.reason",
      run.run_id, run.attempt, run.attempt_started_ns, run.attempt_ended_ns,
      run.attempt_reason);
}

absl::Status UpdateRun(Database& database, RunRow* run) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t number, FindRun(database, run->run_id));
  TANDEM_RETURN_IF_ERROR(SaveRun(database, *run));
  return WriteUpdate(database, number, run);
}

absl::Status SaveWorker(Database& database, const std::string& run_id,
                        const v1::RegisteredWorker& worker) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t number, FindRun(database, run_id));
  return database.Run(
      "INSERT OR REPLACE INTO workers (run, worker_id, worker_kind, "
      "proto_version, schema_id, schema_version, supports_pause, "
      "supports_checkpoint) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      number, worker.worker_id(), worker.worker_kind(), worker.proto_version(),
      worker.schema_id(), worker.schema_version(), worker.supports_pause(),
      worker.supports_checkpoint());
}

absl::StatusOr<std::vector<v1::Attempt>> ReadAttempts(
    Database& database, const std::string& run_id) {
  std::vector<v1::Attempt> attempts;
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      "SELECT steps, episodes, lifecycle, malformed, scalars, number, "
      "started_ns, ended_ns, reason, steps_printed FROM attempts WHERE run_id "
      "= ? ORDER BY "
      "number",
      [&attempts](const Statement& row) {
        v1::Attempt& attempt = attempts.emplace_back();
        attempt.set_steps(static_cast<uint64_t>(row.Int(0)));
        attempt.set_episodes(static_cast<uint64_t>(row.Int(1)));
        attempt.set_lifecycle(static_cast<uint64_t>(row.Int(2)));
        attempt.set_malformed(static_cast<uint64_t>(row.Int(3)));
        attempt.set_scalars(static_cast<uint64_t>(row.Int(4)));
        attempt.set_number(static_cast<uint32_t>(row.Int(5)));
        *attempt.mutable_started() =
            TimeUtil::NanosecondsToTimestamp(row.Int(6));
        if (row.Int(7) != 0) {
          *attempt.mutable_ended() =
              TimeUtil::NanosecondsToTimestamp(row.Int(7));
        }
        attempt.set_reason(std::string(row.Text(8)));
        attempt.set_steps_printed(static_cast<uint64_t>(row.Int(9)));
        return true;
      },
      run_id));
  return attempts;
}

absl::StatusOr<std::vector<RunRow>> LoadRuns(Database& database) {
  std::vector<RunRow> runs;
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      "SELECT run_id, run_name, config_json, digest, token, created_at_ns, "
      "status, failure_reason, gpu_slots, updated_at_ns, update_seq, "
      "cancel_requested, proxy_starts, worker_pid, worker_start_time, "
      "worker_boot_id, last_beat_at_ns, attempt, started_ns, ended_ns, reason, "
      "a.steps, a.episodes, a.lifecycle, a.malformed, a.scalars, "
      "a.steps_printed "
      "FROM runs AS r LEFT JOIN attempt_rows AS a ON a.run = r.run AND "
      "a.number = r.attempt ORDER BY r.run",
      [&runs](const Statement& row) {
        RunRow& run = runs.emplace_back();
        run.run_id = std::string(row.Text(0));
        run.run_name = std::string(row.Text(1));
        run.config_json = std::string(row.Text(2));
        run.digest = std::string(row.Text(3));
        run.token = std::string(row.Text(4));
        run.created_at_ns = row.Int(5);
        run.status = static_cast<RunStatus>(row.Int(6));
        run.failure_reason = OptionalText(row, 7);
        run.gpu_slots = SlotsOf(row.Text(8));
        run.updated_at_ns = row.Int(9);
        run.update_seq = static_cast<uint64_t>(row.Int(10));
        run.cancel_requested = row.Int(11) != 0;
        run.proxy_starts = static_cast<uint32_t>(row.Int(12));
        run.worker.set_pid(static_cast<int32_t>(row.Int(13)));
        run.worker.set_start_time(static_cast<uint64_t>(row.Int(14)));
        run.worker.set_boot_id(std::string(row.Text(15)));
        run.last_beat_at_ns = row.Int(16);
        run.attempt = static_cast<uint32_t>(row.Int(17));
        run.attempt_started_ns = row.Int(18);
        run.attempt_ended_ns = row.Int(19);
        run.attempt_reason = std::string(row.Text(20));
        int column = 21;
        for (const Stream stream : kAllStreams) {
          run.attempt_begin[stream] = static_cast<uint64_t>(row.Int(column++));
        }
        run.attempt_printed = static_cast<uint64_t>(row.Int(column));
        return true;
      }));
  std::map<absl::string_view, RunRow*> by_id;
  for (RunRow& run : runs) by_id.emplace(run.run_id, &run);
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      "SELECT run_id, worker_id, worker_kind, proto_version, schema_id, "
      "schema_version, supports_pause, supports_checkpoint FROM workers AS w "
      "CROSS JOIN runs ON runs.run = w.run",
      [&by_id](const Statement& row) {
        const std::string worker_id(row.Text(1));
        v1::RegisteredWorker& worker =
            by_id.at(row.Text(0))->workers[worker_id];
        worker.set_worker_id(worker_id);
        worker.set_worker_kind(std::string(row.Text(2)));
        worker.set_proto_version(std::string(row.Text(3)));
        worker.set_schema_id(std::string(row.Text(4)));
        worker.set_schema_version(static_cast<uint32_t>(row.Int(5)));
        worker.set_supports_pause(row.Int(6) != 0);
        worker.set_supports_checkpoint(row.Int(7) != 0);
        return true;
      }));
  return runs;
}

absl::StatusOr<std::vector<RunRow>> ReadUpdates(Database& database,
                                                uint64_t since, size_t limit) {
  std::vector<RunRow> updates;
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      "SELECT seq_id, run_id, digest, created_at_ns, u.status, "
      "u.failure_reason, u.gpu_slots, at_ns FROM run_updates AS u CROSS JOIN "
      "runs ON runs.run = u.run WHERE seq_id > ? ORDER BY seq_id LIMIT ?",
      [&updates](const Statement& row) {
        RunRow& update = updates.emplace_back();
        update.update_seq = static_cast<uint64_t>(row.Int(0));
        update.run_id = std::string(row.Text(1));
        update.digest = std::string(row.Text(2));
        update.created_at_ns = row.Int(3);
        update.status = static_cast<RunStatus>(row.Int(4));
        update.failure_reason = OptionalText(row, 5);
        update.gpu_slots = SlotsOf(row.Text(6));
        update.updated_at_ns = row.Int(7);
        return true;
      },
      NearestInt64(since), NearestInt64(limit)));
  return updates;
}

absl::Status DetachRun(Database& database, const std::string& run_id) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t number, FindRun(database, run_id));
  for (const char* sql : {"INSERT INTO detached_runs (run) VALUES (?)",
                          "DELETE FROM run_updates WHERE run = ?",
                          "DELETE FROM positions WHERE run = ?",
                          "DELETE FROM workers WHERE run = ?",
                          "DELETE FROM attempt_rows WHERE run = ?",
                          "DELETE FROM runs WHERE run = ?"}) {
    TANDEM_RETURN_IF_ERROR(database.Run(sql, number));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> RemoveLeftoverRows(Database& database, size_t limit) {
  size_t removed = 0;
  while (removed < limit) {
    TANDEM_ASSIGN_OR_RETURN(
        const int64_t run,
        database.ReadInt("SELECT ifnull(min(run), 0) FROM detached_runs"));
    if (run == 0) break;
    const size_t before = removed;
    // SQLite's default build has no DELETE ... LIMIT. Deletes rows from the
    // front, in their stored order.
    for (absl::string_view table :
         {"step_rows", "episode_rows", "lifecycle_rows", "malformed_rows",
          "scalar_rows"}) {
      TANDEM_RETURN_IF_ERROR(database.Run(
          absl::StrCat("DELETE FROM ", table,
                       " WHERE run = ?1 AND seq_id < ?2 + (SELECT min(seq_id) "
                       "FROM ",
                       table, " WHERE run = ?1)"),
          run, limit - removed));
      removed += static_cast<size_t>(sqlite3_changes(database.connection()));
    }
    if (removed > before) continue;
    for (const char* sql : {"DELETE FROM sources WHERE run = ?",
                            "DELETE FROM scalar_names WHERE run = ?",
                            "DELETE FROM detached_runs WHERE run = ?"}) {
      TANDEM_RETURN_IF_ERROR(database.Run(sql, run));
    }
    ++removed;  // the row of detached_runs
  }
  return removed;
}

}  // namespace tandem::slow_lane
