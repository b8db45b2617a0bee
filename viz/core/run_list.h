// RunList: the runs of this machine that a viewer can watch.
//
// Data flow: the files of /dev/shm -> their headers, copied and checked ->
// entries. It maps no file and takes no reader's lock, so the engine of a
// listed run does not begin to render.
// Ownership: one start page; one thread.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct RunEntry {
  enum class Kind { kRegion, kSegment };
  Kind kind = Kind::kSegment;
  std::string run;        // FrameWatch's argument
  std::string task;       // regions only: the engine's task
  uint32_t num_envs = 0;  // regions only
  // The frames' size. 0: no frames, and `problem` has the reason.
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;
  std::string problem;
  // The run of the daemon that it belongs to, if the daemon has such a run: of
  // a region, that of its engine's process; of a segment, its own name.
  std::string daemon_run;
  // Another user owns it; `problem` has the name. Its content was not read, and
  // FrameWatch would not attach.
  bool is_anothers = false;
  uint64_t frames = 0;  // published so far
  double rolling_return = 0;
  double step_rate_hz = 0;     // NaN: unknown, since nothing is drawn now
  bool moving = false;         // its counters changed since the scan before
  int64_t still_since_ns = 0;  // the time of the last seen change
};

class RunList {
 public:
  // Returns the regions of live engines and all frame segments, sorted by name,
  // at most 1,000. Includes files of other users: segments, and regions that
  // this process may open, also without a live engine. Makes system calls; does
  // not wait.
  const std::vector<RunEntry>& Scan(int64_t now_ns);

 private:
  struct Motion {
    uint64_t counter = 0;
    uint64_t frames = 0;
    uint32_t pid = 0;        // the engine's
    std::string daemon_run;  // of that pid
    int64_t changed_ns = 0;
    // When `frames` was last seen to grow; nullopt: never.
    std::optional<int64_t> drawn_ns;
    bool moving = false;
    bool seen = false;  // in this scan
  };
  // What a scan reads beside an entry.
  struct Seen {
    uint64_t counter = 0;  // of frames, and of a region's steps
    uint32_t pid = 0;      // the engine's
  };
  void Judge(const Seen& seen, int64_t now_ns, RunEntry* entry);
  static std::optional<RunEntry> Read(const std::string& name, Seen* seen);

  std::vector<RunEntry> entries_;
  std::map<std::string, Motion> motions_;  // by kind and run
};

}  // namespace tandem
