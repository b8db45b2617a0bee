// ReadLogTail: a part of a run's log file, for display.
//
// Data flow: the folder that the daemon names -> a file of fixed name -> its
// text, made printable.
// Ownership: any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

enum class LogKind { kErrors, kOutput, kProxy, kConfig };

// Returns the kind of "stderr", "stdout", "proxy" or "config", the run's
// configuration; nullopt: another word.
std::optional<LogKind> LogKindOf(absl::string_view word);

struct LogTail {
  uint64_t size = 0;   // of the file
  uint64_t begin = 0;  // of the text in the file
  uint64_t end = 0;
  std::string text;  // control characters, invalid UTF-8 and marks that change
                     // the direction of text as \xNN; begins with a line
};

constexpr size_t kMostLogBytes = size_t{64} << 10;

// Reads at most kMostLogBytes before `end`; nullopt: before the file's end. An
// empty file is a text of no bytes. Reads a disk; does not follow links.
// Errors: the system's; a run without persist_logs has no files when it has
// ended.
absl::StatusOr<LogTail> ReadLogTail(const std::string& folder, LogKind kind,
                                    std::optional<uint64_t> end);

}  // namespace tandem
