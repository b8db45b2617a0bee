// Small files that appear whole or not at all, and are on disk when the
// writing call returns.
//
// Data flow: text -> a file of another name, fsync -> rename(2) -> fsync of the
// folder.
//
//   absl::Status status = WriteDurably(folder + "/exit", "exited 0\n");

#ifndef TANDEM_SLOW_LANE_RUNS_DURABLE_FILE_H_
#define TANDEM_SLOW_LANE_RUNS_DURABLE_FILE_H_

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Replaces the file, if there is one; only its owner may read and write it.
// Else nothing has changed, and kOutOfSharedMemory's or another system call's
// status says why. Waits for the disk.
absl::Status WriteDurably(const std::string& path, absl::string_view text);

// The file's first `most_bytes`. Nothing: there is no such file.
absl::StatusOr<std::optional<std::string>> ReadIfExists(
    const std::string& path,
    size_t most_bytes = std::numeric_limits<size_t>::max());

// Makes what was made, renamed or removed in a folder last.
absl::Status SyncFolder(const std::string& path);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_DURABLE_FILE_H_
