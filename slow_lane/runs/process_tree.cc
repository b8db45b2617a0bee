#include "slow_lane/runs/process_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "slow_lane/runs/tree_scanner.h"

namespace tandem::slow_lane {
namespace {

// Identifies a process within a boot.
using Key = std::pair<pid_t, uint64_t>;

Key KeyOf(const ProcessIdentity& identity) {
  return {identity.pid, identity.start_time};
}

// PIDFD_SIGNAL_PROCESS_GROUP: signals a whole group at once, so that no process
// can fork in between. Kernels before 6.9 return EINVAL; there the scan finds
// each process of the group.
constexpr unsigned kToWholeGroup = 1u << 2;

constexpr int64_t kLongestPauseNs = 100'000'000;

// Returns the nanoseconds until the deadline, from 0 to `most`.
int64_t Until(Deadline deadline, int64_t most) {
  const int64_t now_ns = MonotonicNanos();
  if (deadline.PassedAt(now_ns)) return 0;
  return std::min(most, deadline.at_ns() - now_ns);
}

absl::Status OpenAndSignal(const ProcessIdentity& process, int signal) {
  TANDEM_ASSIGN_OR_RETURN(const UniqueFd pidfd, OpenProcess(process));
  return SignalProcess(pidfd.get(), signal);
}

// Signals a tree's processes by descriptors, and waits for their ends.
class Ender {
 public:
  explicit Ender(const TreeQuery& query) : scanner_(query) {}

  // Sends SIGTERM and SIGCONT once to each process; waits for their ends.
  // Returns whether no process is left.
  absl::StatusOr<bool> Terminate(Deadline deadline) {
    const auto ask = [this](const TreeMember& member) {
      if (!asked_.insert(KeyOf(member.identity)).second) return;
      Send(member, SIGTERM);
      // A stopped process handles SIGTERM only after SIGCONT.
      Send(member, SIGCONT);
    };
    for (;;) {
      TANDEM_RETURN_IF_ERROR(Scan(ask));
      std::ranges::for_each(members_, ask);
      if (emptiness_ >= kEnoughEmptiness) return true;
      // No process can be waited for, for example without free descriptors.
      if (waiting_.empty() && !members_.empty()) {
        WaitForAnEnd(Until(deadline, kLongestPauseNs));
      }
      while (!waiting_.empty()) {
        const int64_t wait_ns = Until(deadline, int64_t{3600} * 1'000'000'000);
        if (wait_ns == 0) return false;
        WaitForAnEnd(wait_ns);
      }
      if (deadline.PassedAt(MonotonicNanos())) return false;
    }
  }

  // Sends SIGKILL to each process and its group until none is left, at least
  // once.
  absl::Status Kill(Deadline deadline) {
    constexpr int64_t kFirstPauseNs = 1'000'000;
    const auto kill = [this](const TreeMember& member) {
      Send(member, SIGKILL);
    };
    int64_t pause_ns = kFirstPauseNs;
    emptiness_ = 0;
    for (bool is_last = false;;) {
      // First the groups of the last scan, because a scan takes time.
      KillGroups();
      TANDEM_RETURN_IF_ERROR(Scan(kill));
      KillGroups();
      std::ranges::for_each(members_, kill);
      if (emptiness_ >= kEnoughEmptiness || is_last) return absl::OkStatus();
      if (emptiness_ > 0) continue;
      // A new process means that some process forks: scans again soon.
      pause_ns =
          found_new_ ? kFirstPauseNs : std::min(pause_ns * 2, kLongestPauseNs);
      WaitForAnEnd(pause_ns);
      is_last = deadline.PassedAt(MonotonicNanos());
    }
  }

  TreeEnd TakeResult() {
    TreeEnd end;
    end.ended = found_.size() - members_.size();
    for (const TreeMember& member : members_) {
      const auto problem = problems_.find(KeyOf(member.identity));
      if (problem != problems_.end()) end.problems.push_back(problem->second);
    }
    end.left = std::move(members_);
    return end;
  }

 private:
  // Limits the descriptors, which the daemon needs, too.
  static constexpr size_t kMostHeld = 128;
  // The number of consecutive empty scans. One scan may miss a process whose
  // parent forks and ends during the scan. A sure scan counts three times.
  static constexpr int kEnoughEmptiness = 6;

  // Finds the processes and calls `act` for each, also for processes that end
  // during the scan.
  absl::Status Scan(const TreeScanner::Act& act) {
    found_new_ = false;
    TANDEM_ASSIGN_OR_RETURN(
        members_, scanner_.Scan([this, &act](const TreeMember& member) {
          found_new_ |= found_.insert(KeyOf(member.identity)).second;
          act(member);
        }));
    for (const TreeMember& member : members_) {
      const Key key = KeyOf(member.identity);
      found_new_ |= found_.insert(key).second;
      if (waiting_.contains(key) || waiting_.size() >= kMostHeld) continue;
      absl::StatusOr<UniqueFd> pidfd = OpenProcess(member.identity);
      if (pidfd.ok()) waiting_[key] = *std::move(pidfd);
    }
    const int points = scanner_.is_sure() ? 3 : 1;
    emptiness_ = members_.empty() ? emptiness_ + points : 0;
    return absl::OkStatus();
  }

  void Send(const TreeMember& member, int signal) {
    const Key key = KeyOf(member.identity);
    const auto held = waiting_.find(key);
    const absl::Status status = held != waiting_.end()
                                    ? SignalProcess(held->second.get(), signal)
                                    : OpenAndSignal(member.identity, signal);
    if (status.ok() || absl::IsNotFound(status)) {
      problems_.erase(key);
      return;
    }
    problems_[key] =
        absl::StrCat("process ", member.identity.pid, " (", member.name,
                     "): expected to end it, found ", status.message(),
                     "; next: end it as its user or as root");
  }

  void KillGroups() {
    for (const ProcessIdentity& leader : scanner_.Leaders()) {
      if (leaders_.contains(KeyOf(leader))) continue;
      if (leaders_.size() >= kMostHeld) break;
      absl::StatusOr<UniqueFd> pidfd = OpenProcess(leader);
      if (pidfd.ok()) leaders_[KeyOf(leader)] = *std::move(pidfd);
    }
    std::erase_if(leaders_, [](const auto& leader) {
      return syscall(SYS_pidfd_send_signal, leader.second.get(), SIGKILL,
                     nullptr, kToWholeGroup) != 0 &&
             errno == ESRCH;
    });
  }

  // Blocks until a process ends, or for `wait_ns`.
  void WaitForAnEnd(int64_t wait_ns) {
    std::vector<pollfd> polled;
    std::vector<Key> keys;
    for (const auto& [key, pidfd] : waiting_) {
      polled.push_back({.fd = pidfd.get(), .events = POLLIN, .revents = 0});
      keys.push_back(key);
    }
    const timespec wait = {.tv_sec = wait_ns / 1'000'000'000,
                           .tv_nsec = wait_ns % 1'000'000'000};
    if (ppoll(polled.data(), polled.size(), &wait, nullptr) <= 0) return;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) waiting_.erase(keys[i]);
    }
  }

  TreeScanner scanner_;
  std::vector<TreeMember> members_;  // of the latest scan
  bool found_new_ = false;           // whether it found a new process
  int emptiness_ = 0;
  std::map<Key, UniqueFd> waiting_;
  // Leaders of groups. A group outlives its leader; the leader's descriptor
  // stays valid for the group.
  std::map<Key, UniqueFd> leaders_;
  std::set<Key> found_;
  std::set<Key> asked_;
  std::map<Key, std::string> problems_;
};

}  // namespace

std::string TreeEnd::Describe() const {
  std::string text = absl::StrCat(ended, " ended, ", left.size(), " left");
  for (const TreeMember& member : left) {
    absl::StrAppend(&text, ", ", member.identity.pid, " (", member.name, ")");
  }
  if (problems.empty()) return text;
  return absl::StrCat(text, "; ", absl::StrJoin(problems, "; "));
}

absl::StatusOr<std::vector<TreeMember>> FindTree(const TreeQuery& query) {
  return TreeScanner(query).Scan([](const TreeMember&) {});
}

absl::StatusOr<TreeEnd> EndTree(const TreeQuery& query, double grace_secs,
                                double kill_secs) {
  Ender ender(query);
  const Deadline deadline = Deadline::After(grace_secs + kill_secs);
  TANDEM_ASSIGN_OR_RETURN(const bool all_gone,
                          ender.Terminate(Deadline::After(grace_secs)));
  if (!all_gone) TANDEM_RETURN_IF_ERROR(ender.Kill(deadline));
  return ender.TakeResult();
}

absl::StatusOr<size_t> SignalTree(const TreeQuery& query, int signal) {
  // A limit for runs that start processes continuously: each scan finds new
  // ones.
  constexpr int kMostScans = 100;
  TreeScanner scanner(query);
  std::set<Key> sent;
  absl::Status refused;
  for (int i = 0; i < kMostScans; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<TreeMember> members,
                            scanner.Scan([](const TreeMember&) {}));
    bool found_new = false;
    for (const TreeMember& member : members) {
      if (!sent.insert(KeyOf(member.identity)).second) continue;
      found_new = true;
      const absl::Status status = OpenAndSignal(member.identity, signal);
      if (status.ok() || absl::IsNotFound(status)) continue;
      refused = absl::Status(
          status.code(), absl::StrCat("process ", member.identity.pid, " (",
                                      member.name, "): ", status.message()));
    }
    if (!found_new) break;
  }
  if (!refused.ok()) return refused;
  return sent.size();
}

}  // namespace tandem::slow_lane
