// TreeScanner: finds the processes of a run, repeatedly.
//
// Data flow: TreeQuery -> Scan -> one pass over /proc -> processes by token or
// root -> their descendants and groups -> TreeMembers, and leaders of groups.
// Ownership: private to process_tree; not thread-safe.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_token.h"

namespace tandem::slow_lane {

// Finds the tree in each scan. Remembers between scans which sessions and
// groups it led, since their leaders may be gone at the next one.
class TreeScanner {
 public:
  using Act = std::function<void(const TreeMember&)>;

  explicit TreeScanner(const TreeQuery& query);

  // Returns the living processes, and updates Leaders. Calls `act` for some of
  // them at once, since they will be gone later. kUnavailable: /proc cannot be
  // read.
  absl::StatusOr<std::vector<TreeMember>> Scan(const Act& act);

  // Whether all processes listed by the latest scan still lived when it read
  // them. If not, some ended before their run was known.
  bool is_sure() const { return is_sure_; }

  // The leaders of process groups without an excluded process; some may be
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
  // Whether all listed processes still lived when they were read, except
  // zombies of earlier scans.
  absl::StatusOr<bool> See();
  // Returns false if there is no such process, or this user may not read it. An
  // error: it may exist, but this process cannot read it, for example without
  // free descriptors.
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
  // Sessions and groups that processes of the tree led: their number, and the
  // start time of the leader.
  std::map<pid_t, uint64_t> led_sessions_;
  std::map<pid_t, uint64_t> led_groups_;
  std::vector<ProcessIdentity> leaders_;
  std::set<Zombie> zombies_;  // of the latest scan
  bool is_sure_ = false;
  std::string stat_text_;
};

}  // namespace tandem::slow_lane
