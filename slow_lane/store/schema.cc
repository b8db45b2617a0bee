#include "slow_lane/store/schema.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "slow_lane/store/schema_sql.h"

namespace tandem::slow_lane {
namespace {

// Returns whether the file is empty; an error for one of another program or
// version.
absl::StatusOr<bool> IsEmpty(Database& database) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t id,
                          database.ReadInt("PRAGMA application_id"));
  TANDEM_ASSIGN_OR_RETURN(
      const int64_t tables,
      database.ReadInt("SELECT count(*) FROM sqlite_schema"));
  if (id == 0 && tables == 0) return true;
  if (id != kApplicationId) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a database of Tandem's (application_id ", kApplicationId,
        ") or an empty one, found one with application_id ", id, " and ",
        tables,
        " tables, indices and views; name another file: ", database.path()));
  }
  TANDEM_ASSIGN_OR_RETURN(const int64_t version,
                          database.ReadInt("PRAGMA user_version"));
  if (version == kSchemaVersion) return false;
  return absl::FailedPreconditionError(absl::StrCat(
      "expected a database of schema version ", kSchemaVersion,
      ", found version ", version,
      "; use the Tandem that wrote it, or another data folder (--data_dir): ",
      database.path()));
}

absl::Status MakeInTransaction(Database& database) {
  TANDEM_ASSIGN_OR_RETURN(const bool is_empty, IsEmpty(database));
  if (!is_empty) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(database.Execute(
      absl::StrCat(kSchemaSql, "PRAGMA user_version = ", kSchemaVersion,
                   "; PRAGMA application_id = ", kApplicationId)));
  return database.Commit();
}

}  // namespace

absl::Status MakeOrCheckSchema(Database& database) {
  // Another store may make the tables at the same time.
  TANDEM_RETURN_IF_ERROR(database.Begin());
  const absl::Status status = MakeInTransaction(database);
  database.Rollback();
  return status;
}

}  // namespace tandem::slow_lane
