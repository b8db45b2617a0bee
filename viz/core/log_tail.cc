#include "viz/core/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "base/printable.h"

namespace tandem {
namespace {

absl::string_view FileOf(LogKind kind) {
  switch (kind) {
    case LogKind::kErrors:
      return "stderr.log";
    case LogKind::kOutput:
      return "stdout.jsonl";
    case LogKind::kConfig:
      return "config.json";
    case LogKind::kProxy:
      break;
  }
  return "proxy.log";
}

}  // namespace

std::optional<LogKind> LogKindOf(absl::string_view word) {
  if (word == "stderr") return LogKind::kErrors;
  if (word == "stdout") return LogKind::kOutput;
  if (word == "proxy") return LogKind::kProxy;
  if (word == "config") return LogKind::kConfig;
  return std::nullopt;
}

absl::StatusOr<LogTail> ReadLogTail(const std::string& folder, LogKind kind,
                                    std::optional<uint64_t> end) {
  const std::string path = absl::StrCat(folder, "/", FileOf(kind));
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0) {
    return MakeSystemError("fstat", path, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a file with a log, found another "
                                  "kind of file: ",
                                  path));
  }
  LogTail tail;
  tail.size = static_cast<uint64_t>(info.st_size);
  tail.end = std::min(end.value_or(tail.size), tail.size);
  tail.begin = tail.end - std::min<uint64_t>(tail.end, kMostLogBytes);
  std::string bytes(tail.end - tail.begin, '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more =
        pread(file.get(), bytes.data() + got, bytes.size() - got,
              static_cast<off_t>(tail.begin + got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return MakeSystemError("pread", path, errno);
    if (more == 0) break;  // truncated in the meantime
    got += static_cast<size_t>(more);
  }
  bytes.resize(got);
  tail.end = tail.begin + got;
  // A part of a line at the beginning is omitted, if a whole one follows.
  if (const size_t line = bytes.find('\n');
      tail.begin > 0 && line != std::string::npos && line + 1 < bytes.size()) {
    bytes.erase(0, line + 1);
    tail.begin += line + 1;
  }
  tail.text = PrintableLines(bytes);
  return tail;
}

}  // namespace tandem
