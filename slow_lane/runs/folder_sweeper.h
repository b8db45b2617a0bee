// FolderSweeper: removes the folders of deleted runs, whatever they hold, while
// nobody waits for it.
//
// Data flow: RunFolder::SetAside renames -> Sweep -> a thread of the sweeper's
// own removes. What it had not removed when its process ended, the next one
// does.
//
//   FolderSweeper sweeper(data_dir);
//   if (folder.SetAside().ok()) sweeper.Sweep();

#ifndef TANDEM_SLOW_LANE_RUNS_FOLDER_SWEEPER_H_
#define TANDEM_SLOW_LANE_RUNS_FOLDER_SWEEPER_H_

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

class FolderSweeper {
 public:
  // Begins with what earlier processes have left in data_dir/runs. What cannot
  // be removed is named on stderr, and left to the next process.
  explicit FolderSweeper(absl::string_view data_dir);
  FolderSweeper(const FolderSweeper&) = delete;
  FolderSweeper& operator=(const FolderSweeper&) = delete;
  // Waits for the removal of one file at most.
  ~FolderSweeper();

  // Folders were set aside. Thread-safe; doesn't wait.
  void Sweep();

 private:
  void Run();
  void RemoveAll();
  bool IsStopping() const;
  // False: stopped, or something could not be removed.
  bool Remove(const std::string& path);

  const std::string runs_;
  std::set<std::string> stuck_;  // the thread's
  mutable std::mutex mutex_;     // guards what follows
  std::condition_variable wake_;
  bool wanted_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_FOLDER_SWEEPER_H_
