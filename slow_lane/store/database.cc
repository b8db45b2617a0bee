#include "slow_lane/store/database.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem::slow_lane {
namespace {

// Marks a status as a storage failure.
constexpr absl::string_view kStorageFailure = "tandem.slow_lane.storage";

struct Meaning {
  absl::StatusCode code;
  bool storage;
  absl::string_view next;  // the next action
};

Meaning MeaningOf(int code) {
  using absl::StatusCode;
  switch (code) {
    case SQLITE_FULL:
      return {StatusCode::kResourceExhausted, true,
              "the disk is full: make room on it"};
    case SQLITE_NOMEM:
      return {StatusCode::kResourceExhausted, true,
              "memory is full: end other programs, or raise this one's limit"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {StatusCode::kPermissionDenied, true,
              "expected a file and a folder that this user may write: change "
              "their mode or owner, or mount the disk for writing"};
    case SQLITE_CANTOPEN:
      return {StatusCode::kPermissionDenied, true,
              "the file cannot be opened: see that its folder exists and that "
              "this user may write both"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {StatusCode::kUnavailable, true,
              "another program holds the database's lock: end its transaction, "
              "such as an open sqlite3 shell's"};
    case SQLITE_IOERR:
      return {StatusCode::kUnavailable, true,
              "the disk failed (see dmesg), or a quota or limit is reached "
              "(see quota, ulimit -f)"};
    case SQLITE_CORRUPT:
      return {StatusCode::kDataLoss, true,
              "the file is damaged: move it away, and save what is left of it "
              "by sqlite3's .recover"};
    case SQLITE_NOTADB:
      return {StatusCode::kDataLoss, true,
              "expected an SQLite database, found something else: move the "
              "file away, or name another one"};
    case SQLITE_CONSTRAINT:
      return {StatusCode::kInvalidArgument, false, "nothing of it was kept"};
    case SQLITE_TOOBIG:
      return {StatusCode::kInvalidArgument, false,
              "a row may have a billion bytes: send less"};
    default:
      return {StatusCode::kInternal, false, "please report this"};
  }
}

// Returns the system's reason why a file cannot be opened. SQLite tries several
// ways, so its own reason is less useful.
absl::Status CannotOpen(const std::string& path,
                        const Database::Options& options,
                        const absl::Status& found) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  const int file_mode = options.read_only ? R_OK : R_OK | W_OK;
  const int folder_mode = options.read_only ? X_OK : W_OK | X_OK;
  std::string why;
  if (access(folder.c_str(), folder_mode) != 0) {
    why = absl::StrCat("the folder: ", std::strerror(errno));
  } else if (access(path.c_str(), file_mode) != 0) {
    why = absl::StrCat("the file: ", std::strerror(errno));
  } else if (struct stat about;
             stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
    why = "the file: it is a folder";
  } else {
    why = absl::StrCat("the file: ", found.message());
  }
  absl::Status status = absl::PermissionDeniedError(absl::StrCat(
      "expected a file and a folder that this user may ",
      options.read_only ? "read" : "write", ", found of ", why,
      "; make the folder, change its mode or owner, mount the disk for "
      "writing, or name another one: ",
      path));
  status.SetPayload(kStorageFailure, absl::Cord());
  return status;
}

}  // namespace

bool IsStorageFailure(const absl::Status& status) {
  return status.GetPayload(kStorageFailure).has_value();
}

absl::Status SqliteError(sqlite3* connection, absl::string_view doing) {
  const int extended = sqlite3_extended_errcode(connection);
  Meaning meaning = MeaningOf(extended & 0xFF);
  if (extended == SQLITE_CONSTRAINT_UNIQUE ||
      extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
      extended == SQLITE_CONSTRAINT_ROWID) {
    meaning.code = absl::StatusCode::kAlreadyExists;
  }
  const char* path = sqlite3_db_filename(connection, "main");
  absl::Status status(meaning.code,
                      absl::StrCat(doing, ": ", sqlite3_errmsg(connection),
                                   " (sqlite ", extended, "); ", meaning.next,
                                   path == nullptr || *path == '\0' ? "" : ": ",
                                   path == nullptr ? "" : path));
  if (meaning.storage) status.SetPayload(kStorageFailure, absl::Cord());
  return status;
}

absl::string_view Statement::Text(int column) const {
  // SQLite's manual prescribes this order.
  const unsigned char* text = sqlite3_column_text(statement_, column);
  const int bytes = sqlite3_column_bytes(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(bytes)};
}

absl::Status Statement::Finish(int result) {
  constexpr size_t kShown = 60;
  absl::Status status;
  if (result != SQLITE_DONE && result != SQLITE_ROW) {
    const absl::string_view sql = sqlite3_sql(statement_);
    status = SqliteError(sqlite3_db_handle(statement_),
                         sql.size() > kShown
                             ? absl::StrCat(sql.substr(0, kShown), "...")
                             : std::string(sql));
  }
  sqlite3_reset(statement_);
  return status;
}

absl::StatusOr<bool> Statement::Step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  TANDEM_RETURN_IF_ERROR(Finish(result));
  return false;
}

absl::Status Statement::StepThrough(
    absl::FunctionRef<bool(const Statement&)> take) {
  int result = sqlite3_step(statement_);
  while (result == SQLITE_ROW && take(*this)) result = sqlite3_step(statement_);
  return Finish(result);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(
    const std::string& path, const Options& options) {
  sqlite3* connection = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &connection,
      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
          (options.read_only ? SQLITE_OPEN_READONLY
                             : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE),
      nullptr);
  if (connection == nullptr) {
    return absl::ResourceExhaustedError("open: no memory for a connection");
  }
  std::unique_ptr<Database> database(new Database(connection, path));
  if (result != SQLITE_OK) {
    return CannotOpen(path, options, SqliteError(connection, "open"));
  }
  sqlite3_busy_timeout(connection, options.busy_timeout_ms);
  // Affects new files only.
  TANDEM_RETURN_IF_ERROR(database->Execute(
      absl::StrCat("PRAGMA page_size = ", options.page_bytes)));
  // Removed rows are not secret, and need not be overwritten.
  TANDEM_RETURN_IF_ERROR(database->Execute("PRAGMA secure_delete = OFF"));
  // This is the first read of the file.
  if (absl::StatusOr<int64_t> seen = database->ReadInt("PRAGMA schema_version");
      !seen.ok()) {
    return absl::IsPermissionDenied(seen.status())
               ? CannotOpen(path, options, seen.status())
               : seen.status();
  }
  if (!options.read_only && sqlite3_db_readonly(connection, "main") != 0) {
    return CannotOpen(path, options,
                      absl::PermissionDeniedError(absl::StrCat(
                          "expected a file that can be written, found one that "
                          "is read-only: ",
                          path)));
  }
  return database;
}

Database::~Database() {
  cached_.clear();
  // Does not wait for statements: remaining ones keep the connection open.
  sqlite3_close_v2(connection_);
}

absl::Status Database::Execute(const std::string& sql) {
  if (sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) !=
      SQLITE_OK) {
    const absl::string_view shown = absl::StripLeadingAsciiWhitespace(sql);
    return SqliteError(connection_, shown.substr(0, shown.find('\n')));
  }
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement,
                         nullptr) != SQLITE_OK) {
    return SqliteError(connection_, absl::StrCat("prepare ", sql));
  }
  return Statement(statement);
}

absl::StatusOr<Statement*> Database::Cached(absl::string_view sql) {
  auto found = cached_.find(sql);
  if (found == cached_.end()) {
    TANDEM_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
    found = cached_.emplace(std::string(sql), std::move(statement)).first;
  }
  return &found->second;
}

absl::StatusOr<int64_t> Database::ReadInt(absl::string_view sql) {
  absl::StatusOr<int64_t> value =
      absl::InternalError(absl::StrCat(sql, ": expected a row, found none"));
  TANDEM_RETURN_IF_ERROR(ForEachRow(sql, [&value](const Statement& row) {
    value = row.Int(0);
    return false;
  }));
  return value;
}

absl::Status Database::Begin() { return Execute("BEGIN IMMEDIATE"); }

absl::Status Database::Commit() {
  absl::Status status = Execute("COMMIT");
  if (!status.ok()) Rollback();
  return status;
}

void Database::Rollback() {
  // An error means that there was no transaction.
  if (InTransaction()) Execute("ROLLBACK").IgnoreError();
}

bool Database::InTransaction() const {
  return sqlite3_get_autocommit(connection_) == 0;
}

}  // namespace tandem::slow_lane
