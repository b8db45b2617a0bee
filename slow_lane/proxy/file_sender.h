// FileSender: sends summaries, logs and films of a run to the daemon, which is
// on another machine and keeps them in the run's folder there.
//
// Data flow: the run's folder on this machine, looked at once a second -> new
// parts of its files (IsRelayedFile) -> RelayFile. Ownership: the proxy owns
// it; it owns its thread and a connection of its own.
//
//   FileSender sender(link, folder, run_id, token);
//   sender.Finish();                 // the worker has ended
//   if (sender.finished()) ...       // the last parts are there, or failed

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/daemon_link.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

class FileSender {
 public:
  // Starts the thread. `link` must outlive this object; its call is not used.
  FileSender(const DaemonLink& link, RunFolder folder,
             const std::string& run_id, const std::string& token);
  FileSender(const FileSender&) = delete;
  FileSender& operator=(const FileSender&) = delete;
  // Cancels a call, and blocks until the thread has ended.
  ~FileSender() = default;

  // The files will not change any more. Any thread; does not block.
  void Finish() {
    // SYNC(files.finish): release; the worker's last writes before it
    finishing_.store(true, std::memory_order_release);
  }
  // Whether all parts were sent after Finish, or one failed.
  bool finished() const {
    // relaxed: the caller reads nothing else of the thread's.
    return finished_.load(std::memory_order_relaxed);
  }

 private:
  struct Sent {
    uint64_t inode = 0;
    uint64_t bytes = 0;
    // Of the file when all of it was sent.
    uint64_t size = 0;
    int64_t modified_ns = 0;
  };

  // Only the thread calls these.
  void Run(const std::stop_token& stop);
  // Sends what is new. Sets `wanted_` to false if the folder is the daemon's.
  absl::Status SendAll(const std::stop_token& stop);
  absl::Status SendFile(const std::string& name, const std::stop_token& stop);

  const DaemonLink& link_;
  const RunFolder folder_;
  std::atomic<bool> finishing_ = false;
  std::atomic<bool> finished_ = false;

  // Only the thread uses these.
  std::unique_ptr<v1::SlowLane::Stub> stub_;
  v1::RelayFileRequest request_;
  bool wanted_ = true;
  std::map<std::string, Sent> sent_;

  std::jthread thread_;  // last: it ends first
};

}  // namespace tandem::slow_lane
