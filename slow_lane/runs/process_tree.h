// Finds and ends all processes of a run, also those that left its session.
//
// Data flow: TreeQuery -> scans of /proc -> processes -> signals by pidfd.
// What belongs to a run: each process that its token marks (run_token.h), each
// given root; and, again and again, each child of one that belongs, and each
// process of a session or process group that one that belongs leads.
// A process leaves only by doing all of it: own session, cleared environment,
// another resource limit, and a dead parent. Then it is a child of the nearest
// subreaper, which as a root finds it: the run's proxy is one.
//
//   TreeQuery query{.token = plan.token, .roots = {proxy, worker},
//                   .excluded = {proxy.pid}};
//   absl::StatusOr<TreeEnd> end = EndTree(query, 5.0);
//   if (!end->left.empty()) report(end->Describe());
//
// Keep a dead root as a zombie until its tree has ended (worker_launch.h): its
// number identifies the session.

#ifndef TANDEM_SLOW_LANE_RUNS_PROCESS_TREE_H_
#define TANDEM_SLOW_LANE_RUNS_PROCESS_TREE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// Those that are alive now. kUnavailable: /proc cannot be read. One scan: some
// file reads for each process of the machine.
absl::StatusOr<std::vector<TreeMember>> FindTree(const TreeQuery& query);

struct TreeEnd {
  size_t ended = 0;                   // processes that were found and are gone
  std::vector<TreeMember> left;       // alive when the time was over
  std::vector<std::string> problems;  // signals that could not be sent

  // One line for people: how many are gone, and which are left and why.
  std::string Describe() const;
};

// Beyond the grace: what SIGKILL and the scans may take.
inline constexpr double kKillSecs = 20;

// Ends all of it: SIGTERM and SIGCONT to each, `grace_secs` to leave by
// themselves, then SIGKILL, until scans in a row find nothing. Blocks until
// then, or for `kill_secs` more than the grace; SIGKILL is sent at least once.
// kUnavailable: /proc cannot be read. A process in an uninterruptible wait, or
// of another user, is left over.
absl::StatusOr<TreeEnd> EndTree(const TreeQuery& query, double grace_secs,
                                double kill_secs = kKillSecs);

// Sends to each once, until a scan finds no process that it has not been sent
// to: SIGSTOP and SIGCONT for pause and resume. Returns to how many.
// kPermissionDenied: at least one is another user's; all others have it.
absl::StatusOr<size_t> SignalTree(const TreeQuery& query, int signal);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_PROCESS_TREE_H_
