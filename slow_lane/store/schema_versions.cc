#include "slow_lane/store/schema_versions.h"

#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "slow_lane/store/schema_sql.h"

namespace tandem::slow_lane {
namespace {

constexpr Migration kMigrations[] = {kSchema1, kSchema2, kSchema3, kSchema4};

// Refuses a file that another program made.
absl::Status CheckOwner(Database& database) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t id,
                          database.ReadInt("PRAGMA application_id"));
  if (id == kApplicationId) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(
      const int64_t tables,
      database.ReadInt("SELECT count(*) FROM sqlite_schema"));
  if (id == 0 && tables == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "expected a database of Tandem's (application_id ", kApplicationId,
      ") or an empty one, found one with application_id ", id, " and ", tables,
      " tables, indices and views; name another file: ", database.path()));
}

// While it lives, a connection's statements call `watch` about ten times a
// second. An error of `watch` interrupts them.
class WatchedStatements {
 public:
  WatchedStatements(sqlite3* connection, MigrationWatch watch)
      : connection_(connection), watch_(watch) {
    constexpr int kInstructions = 100;  // a few rows, which may have 16 MiB
    sqlite3_progress_handler(connection, kInstructions, &Interrupt, this);
  }
  WatchedStatements(const WatchedStatements&) = delete;
  WatchedStatements& operator=(const WatchedStatements&) = delete;
  ~WatchedStatements() {
    sqlite3_progress_handler(connection_, 0, nullptr, nullptr);
  }

  // The last result of the watch.
  const absl::Status& status() const { return status_; }

 private:
  static int Interrupt(void* self) {
    return static_cast<WatchedStatements*>(self)->CallWatch() ? 0 : 1;
  }
  bool CallWatch() {
    const int64_t now = MonotonicNanos();
    if (status_.ok() && next_.PassedAt(now)) {
      next_ = Deadline::After(kCallSecs, now);
      status_ = watch_(sqlite3_last_insert_rowid(connection_));
    }
    return status_.ok();
  }

  static constexpr double kCallSecs = 0.1;

  sqlite3* const connection_;
  const MigrationWatch watch_;
  Deadline next_ = Deadline::Now();
  absl::Status status_;
};

// `watch` is nullptr for a new file, which has no rows to move.
absl::Status MigrateTo(Database& database, size_t version, Migration sql,
                       const MigrationWatch* watch) {
  std::optional<WatchedStatements> watched;
  if (watch != nullptr) watched.emplace(database.connection(), *watch);
  const absl::Status status = database.Execute(sql);
  if (watched.has_value() && !watched->status().ok()) return watched->status();
  if (!status.ok()) return status;
  // SQLite does not call the watch while it removes the old tables. So it is
  // called once more before the commit.
  if (watch != nullptr) {
    TANDEM_RETURN_IF_ERROR(
        (*watch)(sqlite3_last_insert_rowid(database.connection())));
  }
  return database.Execute(
      absl::StrCat("PRAGMA user_version = ", version,
                   "; PRAGMA application_id = ", kApplicationId));
}

}  // namespace

absl::Span<const Migration> AllMigrations() { return kMigrations; }

absl::Status BringUpToDate(Database& database,
                           absl::Span<const Migration> migrations,
                           MigrationWatch watch) {
  bool is_new = false;
  while (true) {
    // Another store may migrate at the same time: each step reads the version
    // again, with the lock.
    TANDEM_RETURN_IF_ERROR(database.Begin());
    absl::Status status = CheckOwner(database);
    absl::StatusOr<int64_t> version = database.ReadInt("PRAGMA user_version");
    if (status.ok()) status = version.status();
    const auto newest = static_cast<int64_t>(migrations.size());
    if (status.ok() && (*version > newest || *version < 0)) {
      status = absl::FailedPreconditionError(absl::StrCat(
          "expected a database of schema version ", newest,
          " or older, found version ", *version,
          "; use the Tandem that wrote it, or a newer one, or another data "
          "folder: ",
          database.path()));
    }
    if (status.ok() && *version < newest) {
      is_new = is_new || *version == 0;
      status = MigrateTo(database, static_cast<size_t>(*version) + 1,
                         migrations[static_cast<size_t>(*version)],
                         is_new ? nullptr : &watch);
      if (status.ok()) status = database.Commit();
      if (status.ok()) continue;
    }
    database.Rollback();
    return status;
  }
}

}  // namespace tandem::slow_lane
