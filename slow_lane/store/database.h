// Database: a connection to a SQLite file, and Statement: prepared SQL.
//
// Data flow: SQL and C++ values -> sqlite3 -> rows, or an absl::Status with
// sqlite's error text and the next action.
// Ownership: a Database closes its connection. Statements must be destroyed
// before it. One thread at a time uses both.
//
//   auto database = Database::Open(path, {});
//   absl::StatusOr<Statement> insert =
//       (*database)->Prepare("INSERT INTO t VALUES (?, ?)");
//   absl::Status status = insert->Run(7, "seven");
//   Statement& all = **(*database)->Cached("SELECT a, b FROM t WHERE a > ?");
//   all.Bind(1, 3);
//   for (;;) {
//     absl::StatusOr<bool> row = all.Step();
//     if (!row.ok()) return row.status();
//     if (!*row) break;
//     Use(all.Int(0), all.Text(1));
//   }

#pragma once

#include <sqlite3.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Whether the cause of the error is the file, its disk or another program, not
// the request: a retry may succeed. False for OK.
bool IsStorageFailure(const absl::Status& status);

// Converts to sqlite's signed numbers, so that it can compare them.
constexpr int64_t NearestInt64(uint64_t number) {
  constexpr auto kMax = std::numeric_limits<int64_t>::max();
  return number > static_cast<uint64_t>(kMax) ? kMax
                                              : static_cast<int64_t>(number);
}

// Converts sqlite's result to a status. Its text begins with `doing`, such as
// "insert a step", and ends with the file's path. Codes:
//   kResourceExhausted   the disk or the memory is full
//   kPermissionDenied    the file or its folder cannot be written or read
//   kUnavailable         an I/O error, or another process holds the lock
//   kDataLoss            the file is damaged, or not a database
//   kAlreadyExists       the key exists
//   kInvalidArgument     another constraint, or a value that is too large
//   kInternal            an error in the SQL
// The first four are storage failures.
absl::Status SqliteError(sqlite3* connection, absl::string_view doing);

// Move-only. The caller binds values, then steps through the rows. A bound text
// is not copied: it must exist until the statement is done or reset.
class Statement {
 public:
  Statement() = default;  // empty: may only be assigned to
  Statement(Statement&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&& other) noexcept {
    std::swap(statement_, other.statement_);
    return *this;
  }
  ~Statement() { sqlite3_finalize(statement_); }

  // Parameters begin at 1. An unbound parameter is NULL; a binding stays until
  // the next one. No call fails; Step reports a text of 2 GB as an error.
  template <typename T>
  requires std::integral<T> || std::is_enum_v<T>
  void Bind(int parameter, T value) {
    // sqlite has only signed numbers: it displays those above 2^63 - 1 as
    // negative, but returns them unchanged.
    sqlite3_bind_int64(statement_, parameter, static_cast<int64_t>(value));
  }
  // sqlite has no NaN: it becomes NULL, which Real returns as NaN.
  void Bind(int parameter, double value) {
    sqlite3_bind_double(statement_, parameter, value);
  }
  void Bind(int parameter, absl::string_view value) {
    sqlite3_bind_text64(statement_, parameter,
                        value.data() == nullptr ? "" : value.data(),
                        value.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void Bind(int parameter, std::nullptr_t) {
    sqlite3_bind_null(statement_, parameter);
  }
  template <typename T>
  void Bind(int parameter, const std::optional<T>& value) {
    if (value.has_value()) {
      Bind(parameter, *value);
    } else {
      Bind(parameter, nullptr);
    }
  }
  // Binds NULL for an empty text.
  void BindTextOrNull(int parameter, absl::string_view value) {
    if (value.empty()) {
      Bind(parameter, nullptr);
    } else {
      Bind(parameter, value);
    }
  }

  // Advances to the next row: returns true, false if there is none, or
  // SqliteError's status. After false or an error the statement is reset.
  absl::StatusOr<bool> Step();

  // Binds all values, steps to the end, resets. Ignores rows.
  template <typename... Values>
  absl::Status Run(const Values&... values) {
    return ForEachRow([](const Statement&) { return true; }, values...);
  }

  // Binds all values, calls `take` with this statement for each row until it
  // returns false, resets. A read snapshot exists until then.
  template <typename... Values>
  absl::Status ForEachRow(absl::FunctionRef<bool(const Statement&)> take,
                          const Values&... values) {
    int parameter = 0;
    (Bind(++parameter, values), ...);
    return StepThrough(take);
  }

  // The current row's columns, from 0. A text is valid until the next Step or
  // Reset; the text of NULL is empty.
  int64_t Int(int column) const {
    return sqlite3_column_int64(statement_, column);
  }
  double Real(int column) const {
    return IsNull(column) ? std::nan("")
                          : sqlite3_column_double(statement_, column);
  }
  absl::string_view Text(int column) const;
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  absl::Status StepThrough(absl::FunctionRef<bool(const Statement&)> take);
  // Resets; returns the error, if `result` is neither a row nor the end.
  absl::Status Finish(int result);

  sqlite3_stmt* statement_ = nullptr;  // nullptr: none
};

// One connection. All calls may block on the disk.
class Database {
 public:
  struct Options {
    bool read_only = false;
    // The time for which a call waits for another connection's lock before it
    // fails.
    int busy_timeout_ms = 1'000;
    // The page size of a new file; a power of two, 512 to 65536.
    int page_bytes = 8'192;
  };

  // Opens the file, or makes it unless read_only. Errors: as SqliteError, also
  // for a file that is not a database.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        const Options& options);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // Runs any number of statements; ignores rows.
  absl::Status Execute(const std::string& sql);

  // Prepares one statement. The caller must destroy it before the database.
  absl::StatusOr<Statement> Prepare(absl::string_view sql);

  // The same, prepared at its first use and cached until the database closes.
  // The caller is its only user until it is reset. Parameters may still be
  // bound from the last use. Only for a small set of constant texts.
  absl::StatusOr<Statement*> Cached(absl::string_view sql);

  // Statement::Run and ForEachRow of a Cached statement.
  template <typename... Values>
  absl::Status Run(absl::string_view sql, const Values&... values) {
    const absl::StatusOr<Statement*> statement = Cached(sql);
    return statement.ok() ? (*statement)->Run(values...) : statement.status();
  }
  template <typename... Values>
  absl::Status ForEachRow(absl::string_view sql,
                          absl::FunctionRef<bool(const Statement&)> take,
                          const Values&... values) {
    const absl::StatusOr<Statement*> statement = Cached(sql);
    if (!statement.ok()) return statement.status();
    return (*statement)->ForEachRow(take, values...);
  }

  // Returns the first column of the first row of a query, such as a PRAGMA's;
  // kInternal without a row.
  absl::StatusOr<int64_t> ReadInt(absl::string_view sql);

  // Takes the write lock at once, so that no later statement of the transaction
  // fails by a missing lock.
  absl::Status Begin();
  // Commits; rolls back on an error.
  absl::Status Commit();
  // Has no error: sqlite itself may have ended the transaction by a rollback.
  void Rollback();
  bool InTransaction() const;

  sqlite3* connection() const { return connection_; }
  const std::string& path() const { return path_; }

 private:
  Database(sqlite3* connection, std::string path)
      : connection_(connection), path_(std::move(path)) {}

  sqlite3* connection_;
  std::string path_;
  absl::node_hash_map<std::string, Statement> cached_;  // values do not move
};

}  // namespace tandem::slow_lane
