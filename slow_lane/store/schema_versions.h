// Schema versions: the tables of the file, and the migrations of an older file.
//
// Data flow: PRAGMA user_version -> the migrations above it, one transaction
// each.
// Ownership: plain functions, for code that opens the file for writing.

#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "slow_lane/store/database.h"

namespace tandem::slow_lane {

// PRAGMA application_id: "TNDM", which shows the file's program (see `file`).
inline constexpr int32_t kApplicationId = 0x544E444D;

// SQL that migrates a file from version n - 1 to n: schema_n.sql. It is never
// changed after a release.
using Migration = const char*;

// The first migration makes version 1 from an empty file.
absl::Span<const Migration> AllMigrations();

// The migration calls this about ten times a second, for a file that has
// tables. It gets the number of rows moved so far into the current table. If it
// returns an error, the migration is undone and ends.
using MigrationWatch = absl::FunctionRef<absl::Status(int64_t rows)>;

// Runs the missing migrations. After an error the file has a complete earlier
// version. Errors:
//   kFailedPrecondition  the file is newer than the last migration, or another
//                        program's; nothing was changed
//   as SqliteError; the error of `watch`
absl::Status BringUpToDate(Database& database,
                           absl::Span<const Migration> migrations,
                           MigrationWatch watch);

}  // namespace tandem::slow_lane
