// Makes a table of schema version 1 with one ended run:
//   make_old_table tandem.db STEPS
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/schema_versions.h"

namespace tandem::slow_lane {
namespace {

absl::Status MakeTable(const std::string& path, int steps) {
  absl::StatusOr<std::unique_ptr<Database>> database = Database::Open(path, {});
  if (!database.ok()) return database.status();
  absl::Status status = BringUpToDate(**database, AllMigrations().first(1),
                                      [](int64_t) { return absl::OkStatus(); });
  if (!status.ok()) return status;
  return (*database)->Execute(absl::StrCat(
      "PRAGMA journal_mode = WAL; INSERT INTO runs VALUES (1, 'old', 'name', "
      "'{}', 'd', 't', 7, NULL, '[]', 0, 0, 1, 0, 0, 0, 0, '', 0); INSERT INTO "
      "run_updates VALUES (1, 1, 7, NULL, '[]', 0); WITH RECURSIVE n(x) AS "
      "(SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ",
      steps,
      ") INSERT INTO step_rows SELECT 1, x, x, 'w', 0, x, '[0.5]', "
      "printf('%.200c', 'o'), x / 4.0, 0, 0, x, NULL, NULL, NULL, NULL, NULL, "
      "1, NULL, 0 FROM n"));
}

}  // namespace
}  // namespace tandem::slow_lane

int main(int argc, char** argv) {
  if (argc != 3) return EXIT_FAILURE;
  const absl::Status status =
      tandem::slow_lane::MakeTable(argv[1], std::atoi(argv[2]));
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
