// Schema versions: which tables the file has, and how an older file gets them.
//
// Data flow: PRAGMA user_version -> the migrations above it, a transaction
// each.
// Ownership: plain functions, for code that opens the file for writing.
//
//   absl::Status status = BringUpToDate(
//       *database, AllMigrations(), [](int64_t rows) {
//         std::cerr << rows << " rows moved\n";
//         return absl::OkStatus();
//       });

#ifndef TANDEM_SLOW_LANE_STORE_SCHEMA_VERSIONS_H_
#define TANDEM_SLOW_LANE_STORE_SCHEMA_VERSIONS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "slow_lane/store/database.h"

namespace tandem::slow_lane {

// PRAGMA application_id: "TNDM", whose file this is (as `file` shows it).
inline constexpr int32_t kApplicationId = 0x544E444D;

// SQL that makes version n of a file of version n - 1: schema_n.sql. Once
// released it is never changed.
using Migration = const char*;

// The first makes version 1 of an empty file.
absl::Span<const Migration> AllMigrations();

// Called about ten times a second while a migration runs on a file that has
// tables, with the rows moved so far into the table being filled. An error
// undoes the migration and ends it.
using MigrationWatch = absl::FunctionRef<absl::Status(int64_t rows)>;

// Runs the migrations that the file lacks. After an error the file is of some
// earlier version, never in between. Errors:
//   kFailedPrecondition  the file is newer than the last migration, or another
//                        program's; nothing was changed
//   as SqliteError; the error of `watch`
absl::Status BringUpToDate(Database& database,
                           absl::Span<const Migration> migrations,
                           MigrationWatch watch);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_STORE_SCHEMA_VERSIONS_H_
