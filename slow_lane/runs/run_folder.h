// RunFolder: the files of one run. FolderSweeper: removes the files of deleted
// runs.
//
// Data flow: the daemon makes it and writes config.json and launch.json; the
// proxy locks proxy.lock, launches, reads stdout.jsonl and writes exit; the
// worker's process writes its identity into worker before exec.
// Ownership: the daemon's user; other users have no access, since launch.json
// contains the environment. Records appear atomically, and are on disk when the
// writing call returns.

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"
#include "base/work_queue.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// The launch of a run's worker: the contents of launch.json. Strings are bytes
// without NULs.
struct LaunchPlan {
  std::vector<std::string> argv;         // the program first
  std::vector<std::string> environment;  // complete, each "NAME=value"
  std::string working_directory;
  // The run token; the launch adds it to the environment.
  std::string token;
  uint32_t attempt = 1;       // of the run
  uint64_t stderr_begin = 0;  // bytes of stderr.log from earlier attempts

  friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default;
};

// The end of a worker: the contents of exit.
struct WorkerExit {
  enum class How {
    kExited,      // `number` is its exit code
    kSignalled,   // `number` is the signal
    kUnknown,     // exit status unknown; `reason` has the cause
    kNotStarted,  // the start failed; `reason` has the cause
  };
  How how = How::kUnknown;
  int32_t number = 0;
  std::string reason;

  // Returns "exited with code 3", "ended by signal 9 (Killed)", ...
  std::string Describe() const;
  friend bool operator==(const WorkerExit&, const WorkerExit&) = default;
};

// Converts without last_stderr.
v1::WorkerEnded ToProto(const WorkerExit& exit);
WorkerExit FromProto(const v1::WorkerEnded& ended);

// A value type: paths. Calls that write make several system calls and wait for
// the disk.
class RunFolder {
 public:
  // The prefix of folders to be removed; no run_id begins with it.
  static constexpr char kAsidePrefix[] = ".gone-";

  // Returns data_dir/runs/run_id. Makes no system call. `run_id` has passed
  // CheckRunId.
  static RunFolder At(absl::string_view data_dir, absl::string_view run_id);
  // The folder at `path`, with any name.
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
  std::string checkpoints_path() const { return File("checkpoints"); }

  // Makes the folder, and its parent folder, with access for the user only
  // (0700). kAlreadyExists: it exists.
  absl::Status Create() const;

  // Renames the folder so that it belongs to no run, for FolderSweeper to
  // remove; OK if there is none. Does not wait for the disk: a power cut may
  // undo it.
  absl::Status SetAside() const;
  // The same, of the folder of checkpoints alone.
  absl::Status SetCheckpointsAside() const;

  absl::Status WriteConfig(absl::string_view canonical_json) const;

  // Makes the folder of checkpoints, too, which all attempts share.
  absl::Status WriteLaunchPlan(const LaunchPlan& plan) const;
  // kNotFound: there is no plan. kDataLoss: the content is not of
  // WriteLaunchPlan.
  absl::StatusOr<LaunchPlan> ReadLaunchPlan() const;

  // Returns the dispatched worker; nullopt if none was ever dispatched.
  // LaunchWorker writes it. kDataLoss: the file exists, but contains no valid
  // identity.
  absl::StatusOr<std::optional<ProcessIdentity>> ReadWorker() const;

  // Writes the exit record, or replaces it.
  absl::Status WriteExit(const WorkerExit& exit) const;
  // Returns nullopt if no end was recorded. kDataLoss: the content is not of
  // WriteExit.
  absl::StatusOr<std::optional<WorkerExit>> ReadExit() const;

  // Renames the records of an attempt's worker and exit, so that the next
  // attempt can be launched. A second call completes an interrupted one. No
  // process may hold the ProxyLock.
  absl::Status SetRecordsAside(uint32_t attempt) const;

  // Returns the end of the worker's stderr after its first `begin` bytes, at
  // most some 2000 bytes, printable; empty if there is none.
  std::string LastOfStderr(uint64_t begin) const;

  // Whether a process holds the run's ProxyLock. One open and one system call;
  // takes no lock. False if there is no folder.
  absl::StatusOr<bool> HasProxy() const;

 private:
  std::string File(absl::string_view name) const;
  absl::Status MoveAside(const std::string& path,
                         const std::string& name) const;

  std::string path_;
};

// Marks this process as the run's proxy. The kernel releases it when the
// process ends. Move-only. A forked child shares it until it closes its
// descriptors or calls exec.
class ProxyLock {
 public:
  // kAlreadyExists: another process (or object) holds it. Does not block.
  static absl::StatusOr<ProxyLock> Acquire(const RunFolder& folder);

  // The lock stays with this process also after it executes another program.
  void KeepOverExec() const;

 private:
  explicit ProxyLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;  // holds an open-file-description lock
};

// Removes the folders of deleted runs, on its own thread. The next process
// removes folders that remain at this one's end.
class FolderSweeper {
 public:
  // Begins with folders that earlier processes left in data_dir/runs. If one
  // cannot be removed, a line on stderr names it, and the next process tries
  // again.
  explicit FolderSweeper(absl::string_view data_dir);
  FolderSweeper(const FolderSweeper&) = delete;
  FolderSweeper& operator=(const FolderSweeper&) = delete;
  // Blocks at most for the removal of one file.
  ~FolderSweeper();

  // Removes folders that were set aside. Thread-safe; does not wait.
  void Sweep();

 private:
  void RemoveAll();
  // Returns false at the end, or if a file could not be removed.
  bool Remove(const std::string& path);
  bool IsEnding() const;

  const std::string runs_;
  std::set<std::string> stuck_;  // only the queue's thread uses it
  std::atomic<bool> ending_ = false;
  // Last: its end comes first.
  WorkQueue sweeps_{1, 1, WorkQueue::AtEnd::kDropWaiting};
};

}  // namespace tandem::slow_lane
