#include "slow_lane/runs/durable_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>

#include "transport/base/error.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {
namespace {

// The errno of the call that failed, or 0.
int WriteAndSync(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

absl::Status WriteDurably(const std::string& path, absl::string_view text) {
  std::string other = path + ".XXXXXX";
  const UniqueFd file(mkostemp(other.data(), O_CLOEXEC));
  if (!file.valid()) return MakeSystemError("mkostemp", other, errno);
  int error = WriteAndSync(file.get(), text);
  if (error == 0 && rename(other.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(other.c_str());
    return MakeSystemError("write", path, error);
  }
  return SyncFolder(std::filesystem::path(path).parent_path().string());
}

absl::StatusOr<std::optional<std::string>> ReadIfExists(const std::string& path,
                                                        size_t most_bytes) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return std::optional<std::string>();
    return MakeSystemError("open", path, errno);
  }
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = read(file.get(), piece.data(),
                             std::min(piece.size(), most_bytes - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return MakeSystemError("read", path, errno);
    if (got == 0) return std::optional<std::string>(std::move(text));
    text.append(piece.data(), static_cast<size_t>(got));
  }
}

absl::Status SyncFolder(const std::string& path) {
  const UniqueFd folder(open(path.empty() ? "." : path.c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return MakeSystemError("open", path, errno);
  if (fsync(folder.get()) != 0) return MakeSystemError("fsync", path, errno);
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane
