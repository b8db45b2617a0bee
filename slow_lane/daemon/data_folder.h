// DataFolder: the daemon's folder, made or found, entered and locked.
//
// Data flow: --data_dir -> a folder of this user that is closed to others, held
// by its descriptor -> the working directory, and an flock(2) on the folder.
// Ownership: the daemon's main thread.
//
//   absl::StatusOr<DataFolder> folder = DataFolder::Enter(path, {"tandem.db"});
//   if (!folder.ok()) return folder.status();
//   ...                 // a return here removes what was made
//   folder->Keep();     // the daemon serves: the folder stays

#ifndef TANDEM_SLOW_LANE_DAEMON_DATA_FOLDER_H_
#define TANDEM_SLOW_LANE_DAEMON_DATA_FOLDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// Move-only. The lock goes with it.
class DataFolder {
 public:
  // `path`: absolute. Makes the folder with mode 0700, and its parents with the
  // usual one; changes no folder that is there. Blocks for a second at most,
  // for a daemon that is just ending. `files`: what the daemon makes there.
  // kAlreadyExists: another daemon has the folder. kFailedPrecondition: it is
  // another user's, or open to others, or no folder. Else the system's error.
  static absl::StatusOr<DataFolder> Enter(const std::string& path,
                                          std::vector<std::string> files);

  DataFolder(DataFolder&&) noexcept = default;
  DataFolder& operator=(DataFolder&&) = delete;
  // Unless Keep was called: of a folder that Enter made removes `files`, then
  // it and the parents that Enter made, as far as they are empty.
  ~DataFolder();

  // Without links in the middle of it resolved, and without "/." at its end.
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

#endif  // TANDEM_SLOW_LANE_DAEMON_DATA_FOLDER_H_
