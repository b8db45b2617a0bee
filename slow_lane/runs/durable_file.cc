#include "slow_lane/runs/durable_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/os/unique_fd.h"

namespace tandem::slow_lane {
int WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int ReadToEnd(int fd, std::string* text) {
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    text->append(piece.data(), static_cast<size_t>(got));
  }
}

int ReadFile(const std::string& path, std::string* text) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? ReadToEnd(file.get(), text) : errno;
}

absl::Status WriteDurably(const std::string& path, absl::string_view text) {
  std::string other = path + ".XXXXXX";
  const UniqueFd file(mkostemp(other.data(), O_CLOEXEC));
  if (!file.valid()) return MakeSystemError("mkostemp", other, errno);
  int error = WriteAll(file.get(), text);
  if (error == 0 && fsync(file.get()) != 0) error = errno;
  if (error == 0 && rename(other.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(other.c_str());
    return MakeSystemError("write", path, error);
  }
  return SyncFolder(std::filesystem::path(path).parent_path().string());
}

absl::StatusOr<std::optional<std::string>> ReadIfExists(
    const std::string& path) {
  std::string text;
  const int error = ReadFile(path, &text);
  if (error == ENOENT) return std::optional<std::string>();
  if (error != 0) return MakeSystemError("read", path, error);
  return std::optional<std::string>(std::move(text));
}

absl::Status SyncFolder(const std::string& path) {
  const UniqueFd folder(open(path.empty() ? "." : path.c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return MakeSystemError("open", path, errno);
  if (fsync(folder.get()) != 0) return MakeSystemError("fsync", path, errno);
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane
