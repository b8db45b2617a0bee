#include "program/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "base/shell_quoted.h"

namespace tandem {
namespace {

constexpr mode_t kOthersBits = 077;
// A token and white space around it.
constexpr size_t kMostFileBytes = 4096;

absl::Status NoToken(const std::string& found, const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a token of ", kLeastTokenBytes, " to ", kMostTokenBytes,
      " printable characters without a space, found ", found,
      "; next: (umask 077; head -c 32 /dev/urandom | base64 > ",
      ShellQuoted(path), ")"));
}

}  // namespace

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer would block the caller.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0) {
    return MakeSystemError("fstat", path, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a regular file with a token, found another kind of file; "
        "next: name the file itself, or a path that is free: ",
        path));
  }
  if (info.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("expected a token file of this user (uid ", geteuid(),
                     "), found one of uid ", info.st_uid,
                     "; next: copy the token into a file of your own: ", path));
  }
  if ((info.st_mode & kOthersBits) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "expected a token file that is closed to other users, found mode %04o;"
        " next: chmod 600 %s",
        info.st_mode & 07777, ShellQuoted(path)));
  }
  std::string content(kMostFileBytes + 1, '\0');
  size_t size = 0;
  while (size < content.size()) {
    const ssize_t bytes =
        read(file.get(), content.data() + size, content.size() - size);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return MakeSystemError("read", path, errno);
    if (bytes == 0) break;
    size += static_cast<size_t>(bytes);
  }
  content.resize(size);
  const absl::string_view token = absl::StripAsciiWhitespace(content);
  if (token.size() < kLeastTokenBytes || token.size() > kMostTokenBytes) {
    return NoToken(size > kMostFileBytes
                       ? absl::StrCat("more than ", kMostFileBytes, " bytes")
                       : absl::StrCat(token.size(), " bytes"),
                   path);
  }
  const auto unusual = std::find_if_not(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (unusual != token.end()) {
    return NoToken(absl::StrFormat("the byte 0x%02x at offset %d",
                                   static_cast<unsigned char>(*unusual),
                                   unusual - token.begin()),
                   path);
  }
  return std::string(token);
}

}  // namespace tandem
