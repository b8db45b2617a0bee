// TreeScanner: the processes of a run, found again and again.
//
// Data flow: TreeQuery -> Scan -> one pass over /proc -> processes by token
// or root -> processes by those -> TreeMembers, and leaders of groups.
// Ownership: private to process_tree; not thread-safe.
//
//   TreeScanner scanner(query);
//   absl::StatusOr<std::vector<TreeMember>> members = scanner.Scan(act);

#ifndef TANDEM_SLOW_LANE_RUNS_TREE_SCANNER_H_
#define TANDEM_SLOW_LANE_RUNS_TREE_SCANNER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_token.h"

namespace tandem::slow_lane {

// Finds the tree again and again, and remembers between scans which sessions
// and groups it led: their leaders may be gone by the next one.
class TreeScanner {
 public:
  using Act = std::function<void(const TreeMember&)>;

  explicit TreeScanner(const TreeQuery& query);

  // Returns the processes that are alive. Afterwards Leaders are of this scan,
  // too. `act` is called for some of them as soon as they are seen: they will
  // be gone later. kUnavailable: /proc cannot be read.
  absl::StatusOr<std::vector<TreeMember>> Scan(const Act& act);

  // Whether all that the latest scan had listed still lived when it read
  // them: else some were gone before their run was known.
  bool is_sure() const { return is_sure_; }

  // Those that lead a process group without an excluded process; some may be
  // zombies.
  const std::vector<ProcessIdentity>& Leaders() const { return leaders_; }

 private:
  struct Seen {
    TreeMember process;
    bool alive = false;
    bool belongs = false;
  };

  using Zombie = std::pair<pid_t, uint64_t>;  // and its start time

  bool IsExcluded(pid_t pid) const { return excluded_.contains(pid); }
  // Whether all that were listed still lived when they were read, but for
  // zombies of earlier scans.
  absl::StatusOr<bool> See();
  // False: no such process, or none that this user may read. An error: it
  // may exist, but this process cannot read it, such as without descriptors.
  absl::StatusOr<bool> SeeOne(pid_t pid, bool is_chased);
  absl::Status Chase(const Act& act);
  bool IsLedOrOrphaned(const ProcessStat& stat) const;
  void Follow();
  void ForgetEmpty();
  void FindLeaders();

  const std::vector<ProcessIdentity> roots_;
  const RunToken token_;
  std::set<pid_t> excluded_;

  std::map<pid_t, Seen> seen_;
  // Sessions and groups that processes of the tree led, by number, with the
  // leader's start.
  std::map<pid_t, uint64_t> led_sessions_;
  std::map<pid_t, uint64_t> led_groups_;
  std::vector<ProcessIdentity> leaders_;
  std::set<Zombie> zombies_;  // of the latest scan
  bool is_sure_ = false;
  std::string stat_text_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_TREE_SCANNER_H_
