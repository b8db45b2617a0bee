#include "slow_lane/daemon/file_relay.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "base/quoted.h"
#include "slow_lane/runs/relayed_files.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

absl::StatusOr<v1::RelayFileResponse> FileRelay::Write(
    const v1::RelayFileRequest& request) const {
  const std::string folder = RunFolder::At(data_dir_, request.run_id()).path();
  v1::RelayFileResponse response;
  if (request.marker().find('/') == std::string::npos &&
      access(absl::StrCat(folder, "/", request.marker()).c_str(), F_OK) == 0) {
    return response;
  }
  response.set_wanted(true);
  if (!IsRelayedFile(request.name()) ||
      request.data().size() > kMaxRelayedPart ||
      request.offset() > kMaxRelayedFile - request.data().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a part of a summary, a log or a film, found ",
                     request.data().size(), " bytes at ", request.offset(),
                     " of ", Quoted(request.name())));
  }
  const std::string path = absl::StrCat(folder, "/", request.name());
  // Readers of a small file see the old one or the new one.
  const bool is_new = request.offset() == 0;
  const std::string written = is_new ? absl::StrCat(path, ".new") : path;
  const UniqueFd file(
      open(written.c_str(),
           O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (is_new ? O_CREAT | O_TRUNC : 0),
           0600));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return MakeSystemError("open", written, errno);
  }
  if (static_cast<uint64_t>(info.st_size) != request.offset()) {
    return absl::OutOfRangeError(absl::StrCat("expected a part at ",
                                              info.st_size, ", found one at ",
                                              request.offset()));
  }
  const ssize_t bytes =
      pwrite(file.get(), request.data().data(), request.data().size(),
             static_cast<off_t>(request.offset()));
  if (bytes < 0 || static_cast<size_t>(bytes) != request.data().size() ||
      (is_new && rename(written.c_str(), path.c_str()) != 0)) {
    return MakeSystemError("write", written, bytes < 0 ? errno : ENOSPC);
  }
  return response;
}

}  // namespace tandem::slow_lane
