// DataFolder: the daemon's data folder: made or opened, entered and locked.
//
// Data flow: --data_dir -> a folder of this user without access for others,
// held by its descriptor -> the working directory, and an flock(2) on the
// folder.
// Ownership: the daemon's main thread.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/os/unique_fd.h"

namespace tandem::slow_lane {

// Move-only. The lock moves with the object.
class DataFolder {
 public:
  // `path`: absolute. Makes the folder with mode 0700, and its parents with the
  // usual mode. An existing folder of this user that is empty or a daemon's
  // gets mode 0700, too, with a line on stderr, unless others may write it.
  // Blocks at most a second, for a daemon that is ending. `files`: the files
  // that the daemon makes there.
  // Errors:
  //  - kAlreadyExists: another daemon has the folder.
  //  - kFailedPrecondition: another user owns it, others have access to what
  //    may be another program's, or it is not a folder.
  //  - otherwise the system's error.
  static absl::StatusOr<DataFolder> Enter(const std::string& path,
                                          std::vector<std::string> files);

  DataFolder(DataFolder&&) noexcept = default;
  DataFolder& operator=(DataFolder&&) = delete;
  // If Enter made the folder and Keep was not called: removes `files`, then the
  // folder and the parents that Enter made, if they are empty.
  ~DataFolder();

  // Links in the path are unresolved; a "/." at the end is removed.
  const std::string& path() const { return path_; }

  void Keep() { made_.clear(); }

 private:
  DataFolder(std::string path, std::vector<std::string> files)
      : path_(std::move(path)), files_(std::move(files)) {}

  absl::Status Make();
  absl::Status Open();
  absl::Status Lock();

  std::string path_;
  std::vector<std::string> files_;
  std::vector<std::string> made_;  // folders, the outermost first
  UniqueFd folder_;
  bool locked_ = false;
};

}  // namespace tandem::slow_lane
