// The schema of the store's file: its tables, and the check of an existing
// file.
//
// Data flow: an empty file -> schema.sql, in one transaction. Another file ->
// PRAGMA application_id and user_version.
// Ownership: plain functions, for code that opens the file for writing.

#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "slow_lane/store/database.h"

namespace tandem::slow_lane {

// PRAGMA application_id: "TNDM", which shows the file's program (see `file`).
inline constexpr int32_t kApplicationId = 0x544E444D;

// PRAGMA user_version. Each change of schema.sql gets the next number.
inline constexpr int64_t kSchemaVersion = 5;

// Makes the tables of an empty file. Errors, after which nothing was changed:
//   kFailedPrecondition  the file has another schema version, or is another
//                        program's
//   as SqliteError
absl::Status MakeOrCheckSchema(Database& database);

}  // namespace tandem::slow_lane
