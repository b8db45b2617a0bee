// Writes small files that appear atomically, and are on disk when the call
// returns.
//
// Data flow: text -> a file with another name, fsync -> rename(2) -> fsync of
// the folder.

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Writes the file, or replaces it; only its owner may read and write it. On an
// error nothing has changed, and the status is that of the failed system call.
// Waits for the disk.
absl::Status WriteDurably(const std::string& path, absl::string_view text);

// Returns nullopt if there is no such file.
absl::StatusOr<std::optional<std::string>> ReadIfExists(
    const std::string& path);

// Append the remaining content to `text`; return 0, or the errno of the failed
// call.
int ReadToEnd(int fd, std::string* text);
int ReadFile(const std::string& path, std::string* text);

// Returns 0, or errno. Async-signal-safe.
int WriteAll(int fd, absl::string_view text);

// Makes creations, renames and removals in a folder durable.
absl::Status SyncFolder(const std::string& path);

}  // namespace tandem::slow_lane
