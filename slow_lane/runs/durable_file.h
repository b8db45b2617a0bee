// Small files that appear atomically, and are on disk when the writing call
// returns.
//
// Data flow: text -> a file of another name, fsync -> rename(2) -> fsync of the
// folder.
//
//   absl::Status status = WriteDurably(folder + "/exit", "exited 0\n");

#ifndef TANDEM_SLOW_LANE_RUNS_DURABLE_FILE_H_
#define TANDEM_SLOW_LANE_RUNS_DURABLE_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Replaces the file, if there is one; only its owner may read and write it.
// Else nothing has changed, and the status is that of the
// system call that failed. Waits for the disk.
absl::Status WriteDurably(const std::string& path, absl::string_view text);

// Nothing: there is no such file.
absl::StatusOr<std::optional<std::string>> ReadIfExists(
    const std::string& path);

// Append all that is left to read to `text`; return 0, or the errno of the call
// that failed.
int ReadToEnd(int fd, std::string* text);
int ReadFile(const std::string& path, std::string* text);

// Returns 0, or errno. Async-signal-safe.
int WriteAll(int fd, absl::string_view text);

// Makes creations, renames and removals in a folder durable.
absl::Status SyncFolder(const std::string& path);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_DURABLE_FILE_H_
