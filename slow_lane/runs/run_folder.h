// RunFolder: the files of one run. FolderSweeper: removes those of deleted
// runs.
//
// Data flow: the daemon makes it and writes config.json and launch.json; the
// proxy locks proxy.lock, launches, tails stdout.jsonl and writes exit; the
// worker's process leaves its identity in worker before it becomes the worker.
// Ownership: the daemon's user; other users have no access (launch.json holds
// the environment). Records appear atomically, and are on disk when the writing
// call returns.
//
//   const RunFolder folder = RunFolder::At(data_dir, run_id);
//   folder.Create();
//   folder.WriteLaunchPlan(plan);
//   absl::StatusOr<ProxyLock> lock = ProxyLock::Acquire(folder);  // the proxy
//   folder.HasProxy();                                            // the daemon

#ifndef TANDEM_SLOW_LANE_RUNS_RUN_FOLDER_H_
#define TANDEM_SLOW_LANE_RUNS_RUN_FOLDER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/runs/process_identity.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// How to start a run's worker: the contents of launch.json. Strings are bytes,
// without NULs.
struct LaunchPlan {
  std::vector<std::string> argv;         // the program first
  std::vector<std::string> environment;  // all of it, each "NAME=value"
  std::string working_directory;
  // What marks the run's processes; the launch puts it into the environment.
  std::string token;

  friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default;
};

// How a worker ended: the contents of exit.
struct WorkerExit {
  enum class How {
    kExited,      // `number` is its exit code
    kSignalled,   // `number` is the signal
    kUnknown,     // no process saw it; `reason` says why
    kNotStarted,  // it never ran; `reason` says why
  };
  How how = How::kUnknown;
  int32_t number = 0;
  std::string reason;

  // "exited with code 3", "ended by signal 9 (Killed)", ...
  std::string Describe() const;
  friend bool operator==(const WorkerExit&, const WorkerExit&) = default;
};

// Without last_stderr.
v1::WorkerEnded ToProto(const WorkerExit& exit);
WorkerExit FromProto(const v1::WorkerEnded& ended);

// A value: paths. Calls that write make several system calls and wait for the
// disk.
class RunFolder {
 public:
  // Of the names of folders that are to be removed; of no run_id.
  static constexpr char kAsidePrefix[] = ".gone-";

  // data_dir/runs/run_id. No system call. `run_id` has passed CheckRunId.
  static RunFolder At(absl::string_view data_dir, absl::string_view run_id);
  // That folder, whatever its name.
  explicit RunFolder(absl::string_view path) : path_(path) {}

  const std::string& path() const { return path_; }
  std::string config_path() const { return File("config.json"); }
  std::string launch_path() const { return File("launch.json"); }
  std::string stdout_path() const { return File("stdout.jsonl"); }
  std::string stderr_path() const { return File("stderr.log"); }
  std::string proxy_log_path() const { return File("proxy.log"); }
  std::string proxy_lock_path() const { return File("proxy.lock"); }
  std::string worker_path() const { return File("worker"); }
  std::string exit_path() const { return File("exit"); }

  // Makes it, and the folder that it lies in, for the user alone (0700).
  // kAlreadyExists: it is there.
  absl::Status Create() const;

  // Renames it to one that belongs to no run, for FolderSweeper to remove; OK
  // if there is none. Doesn't wait for the disk: a power cut may undo it.
  absl::Status SetAside() const;

  absl::Status WriteConfig(absl::string_view canonical_json) const;

  absl::Status WriteLaunchPlan(const LaunchPlan& plan) const;
  // kNotFound: there is none. kDataLoss: not as WriteLaunchPlan wrote it.
  absl::StatusOr<LaunchPlan> ReadLaunchPlan() const;

  // The dispatched worker; nothing: none ever. Written by LaunchWorker.
  // kDataLoss: the file is there, but names no process.
  absl::StatusOr<std::optional<ProcessIdentity>> ReadWorker() const;

  // Replaces an earlier one.
  absl::Status WriteExit(const WorkerExit& exit) const;
  // Nothing: no end was written down. kDataLoss: not as WriteExit wrote it.
  absl::StatusOr<std::optional<WorkerExit>> ReadExit() const;

  // Whether a process holds the run's ProxyLock. One open and one system call;
  // takes no lock. False where there is no folder.
  absl::StatusOr<bool> HasProxy() const;

 private:
  std::string File(absl::string_view name) const;

  std::string path_;
};

// Marks this process as the run's proxy; the kernel releases it when the
// process ends. Move-only. A forked child shares it until it closes its
// descriptors or calls exec.
class ProxyLock {
 public:
  // kAlreadyExists: another process (or object) has it. Does not block.
  static absl::StatusOr<ProxyLock> Acquire(const RunFolder& folder);

 private:
  explicit ProxyLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;  // holds an open-file-description lock
};

// Removes the folders of deleted runs on a thread of its own. A folder that is
// left when the process ends is removed by the next one.
class FolderSweeper {
 public:
  // Begins with what earlier processes have left in data_dir/runs. What cannot
  // be removed is named on stderr, and left to the next process.
  explicit FolderSweeper(absl::string_view data_dir);
  FolderSweeper(const FolderSweeper&) = delete;
  FolderSweeper& operator=(const FolderSweeper&) = delete;
  // Waits for the removal of one file at most.
  ~FolderSweeper() = default;

  // Folders were set aside. Thread-safe; doesn't wait.
  void Sweep();

 private:
  void RemoveAll(const std::stop_token& stop);
  // False: stopped, or something could not be removed.
  bool Remove(const std::string& path, const std::stop_token& stop);

  const std::string runs_;
  std::set<std::string> stuck_;  // the thread's
  std::mutex mutex_;             // guards wanted_
  std::condition_variable_any wake_;
  bool wanted_ = true;
  std::jthread thread_;  // last: its end comes first
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_RUN_FOLDER_H_
