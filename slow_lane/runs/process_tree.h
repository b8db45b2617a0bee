// Finds and ends all processes of a run, also those that left its session.
//
// Data flow: TreeQuery -> scans of /proc -> processes -> signals by pidfd.
// These processes belong to a run: each with its token (run_token.h); each
// given root; and, repeatedly, each child of a member, and each process of a
// session or process group that a member leads. A process leaves the tree only
// if all of this is true: it has its own session, a cleared environment,
// another resource limit, and a dead parent. Then it becomes a child of the
// nearest subreaper. The run's proxy is a subreaper and a root, so the search
// finds the process.
//
// The caller must keep a dead root as a zombie until its tree has ended
// (worker_launch.h): its pid identifies the session.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// Returns the living members. kUnavailable: /proc cannot be read. One scan:
// some file reads for each process of the machine.
absl::StatusOr<std::vector<TreeMember>> FindTree(const TreeQuery& query);

struct TreeEnd {
  size_t ended = 0;                   // processes found and now gone
  std::vector<TreeMember> left;       // alive at the end of the time
  std::vector<std::string> problems;  // signals that could not be sent

  // Returns one line for users: the number of ended processes, and the
  // remaining ones with the reason.
  std::string Describe() const;
};

// The time after the grace for SIGKILL and the scans.
inline constexpr double kKillSecs = 20;

// Ends all members: sends SIGTERM and SIGCONT to each, waits `grace_secs` for
// their exit, then sends SIGKILL, until consecutive scans find none. Blocks
// until then, or at most for `kill_secs` more than the grace; sends SIGKILL at
// least once. kUnavailable: /proc cannot be read. A process in an
// uninterruptible wait, or of another user, may remain.
absl::StatusOr<TreeEnd> EndTree(const TreeQuery& query, double grace_secs,
                                double kill_secs = kKillSecs);

// Sends the signal once to each member, until a scan finds no new one: SIGSTOP
// and SIGCONT for pause and resume. Returns the number of processes.
// kPermissionDenied: at least one belongs to another user; all others have got
// it.
absl::StatusOr<size_t> SignalTree(const TreeQuery& query, int signal);

}  // namespace tandem::slow_lane
