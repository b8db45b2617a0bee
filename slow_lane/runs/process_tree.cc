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
#include "slow_lane/runs/tree_scanner.h"
#include "transport/base/clock.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {
namespace {

// What tells processes of one boot apart.
using Key = std::pair<pid_t, uint64_t>;

Key KeyOf(const ProcessIdentity& identity) {
  return {identity.pid, identity.start_time};
}

// PIDFD_SIGNAL_PROCESS_GROUP: to a whole group at once, which leaves no time to
// fork. Kernels before 6.9 do not know it (EINVAL); there each of the group's
// processes is found one by one.
constexpr unsigned kToWholeGroup = 1u << 2;

// Signals a tree's processes, each by a descriptor, and waits for their ends.
class Ender {
 public:
  explicit Ender(const TreeQuery& query) : scanner_(query) {}

  // Looks for processes and takes up those that are new. SIGTERM and SIGCONT to
  // those that did not have them.
  absl::Status LookAndAsk();
  // The same with SIGKILL to all, and to their groups.
  absl::Status LookAndKill();
  // Until one of them ends, or `wait_ns` have passed.
  void WaitForAnEnd(int64_t wait_ns);
  // Whether the latest Scan found no process; whether it found a new one.
  bool found_none() const { return members_.empty(); }
  bool found_new() const { return found_new_; }
  bool is_sure() const { return scanner_.is_sure(); }
  // Whether all that are waited for have ended.
  bool all_ended() const { return waiting_.empty(); }
  TreeEnd TakeResult();

 private:
  // The daemon needs descriptors, too, however many processes there are.
  static constexpr size_t kMostHeld = 128;

  absl::Status Scan(const TreeScanner::Act& act);
  void Send(const TreeMember& member, int signal);
  void Ask(const TreeMember& member);
  void KillGroups();

  TreeScanner scanner_;
  std::vector<TreeMember> members_;
  bool found_new_ = false;
  std::map<Key, UniqueFd> waiting_;
  // Leaders of groups: a group outlives its leader, whose descriptor stays
  // good for it.
  std::map<Key, UniqueFd> leaders_;
  std::set<Key> found_;
  std::set<Key> asked_;
  std::map<Key, std::string> problems_;
};

absl::Status Ender::Scan(const TreeScanner::Act& act) {
  found_new_ = false;
  absl::StatusOr<std::vector<TreeMember>> members =
      scanner_.Scan([this, &act](const TreeMember& member) {
        found_new_ |= found_.insert(KeyOf(member.identity)).second;
        act(member);
      });
  if (!members.ok()) return members.status();
  members_ = *std::move(members);
  for (const TreeMember& member : members_) {
    const Key key = KeyOf(member.identity);
    found_new_ |= found_.insert(key).second;
    if (waiting_.contains(key) || waiting_.size() >= kMostHeld) continue;
    absl::StatusOr<UniqueFd> pidfd = OpenProcess(member.identity);
    if (pidfd.ok()) waiting_[key] = *std::move(pidfd);
  }
  return absl::OkStatus();
}

void Ender::Send(const TreeMember& member, int signal) {
  const Key key = KeyOf(member.identity);
  const auto held = waiting_.find(key);
  absl::Status status;
  if (held != waiting_.end()) {
    status = SignalProcess(held->second.get(), signal);
  } else {
    const absl::StatusOr<UniqueFd> pidfd = OpenProcess(member.identity);
    status = pidfd.ok() ? SignalProcess(pidfd->get(), signal) : pidfd.status();
  }
  if (status.ok() || absl::IsNotFound(status)) {
    problems_.erase(key);
    return;
  }
  problems_[key] =
      absl::StrCat("process ", member.identity.pid, " (", member.name,
                   "): expected to end it, found ", status.message(),
                   "; next: end it as its user or as root");
}

void Ender::Ask(const TreeMember& member) {
  if (!asked_.insert(KeyOf(member.identity)).second) return;
  Send(member, SIGTERM);
  // One that is stopped acts only then.
  Send(member, SIGCONT);
}

void Ender::KillGroups() {
  for (const ProcessIdentity& leader : scanner_.Leaders()) {
    if (leaders_.contains(KeyOf(leader))) continue;
    if (leaders_.size() >= kMostHeld) break;
    absl::StatusOr<UniqueFd> pidfd = OpenProcess(leader);
    if (pidfd.ok()) leaders_[KeyOf(leader)] = *std::move(pidfd);
  }
  std::erase_if(leaders_, [](const auto& leader) {
    return syscall(SYS_pidfd_send_signal, leader.second.get(), SIGKILL, nullptr,
                   kToWholeGroup) != 0 &&
           errno == ESRCH;
  });
}

absl::Status Ender::LookAndAsk() {
  const auto ask = [this](const TreeMember& member) { Ask(member); };
  if (absl::Status status = Scan(ask); !status.ok()) return status;
  std::ranges::for_each(members_, ask);
  return absl::OkStatus();
}

absl::Status Ender::LookAndKill() {
  const auto kill = [this](const TreeMember& member) { Send(member, SIGKILL); };
  // Those of the last look, before a look that takes time.
  KillGroups();
  if (absl::Status status = Scan(kill); !status.ok()) return status;
  KillGroups();
  std::ranges::for_each(members_, kill);
  return absl::OkStatus();
}

void Ender::WaitForAnEnd(int64_t wait_ns) {
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

TreeEnd Ender::TakeResult() {
  TreeEnd end;
  end.ended = found_.size() - members_.size();
  for (const TreeMember& member : members_) {
    const auto problem = problems_.find(KeyOf(member.identity));
    if (problem != problems_.end()) end.problems.push_back(problem->second);
  }
  end.left = std::move(members_);
  return end;
}

// Nanoseconds until then, from 0 to `most`.
int64_t Until(Deadline deadline, int64_t most) {
  const int64_t now_ns = MonotonicNanos();
  if (deadline.PassedAt(now_ns)) return 0;
  return std::min(most, deadline.at_ns() - now_ns);
}

// When enough looks in a row have found no process. One may miss a process
// whose parent forks and ends meanwhile.
class Emptiness {
 public:
  // Of the latest look.
  void Count(const Ender& ender) {
    if (!ender.found_none()) {
      points_ = 0;
    } else {
      points_ += ender.is_sure() ? 3 : 1;
    }
  }
  bool IsAny() const { return points_ > 0; }
  bool IsSure() const { return points_ >= 6; }

 private:
  int points_ = 0;
};

constexpr int64_t kLongestPauseNs = 100'000'000;

// Returns whether no process is left.
absl::StatusOr<bool> AskToEnd(Ender& ender, Deadline deadline) {
  for (Emptiness emptiness;;) {
    if (absl::Status status = ender.LookAndAsk(); !status.ok()) return status;
    emptiness.Count(ender);
    if (emptiness.IsSure()) return true;
    // Where none can be waited for, such as for want of descriptors.
    if (ender.all_ended() && !ender.found_none()) {
      ender.WaitForAnEnd(Until(deadline, kLongestPauseNs));
    }
    while (!ender.all_ended()) {
      const int64_t wait_ns = Until(deadline, int64_t{3600} * 1'000'000'000);
      if (wait_ns == 0) return false;
      ender.WaitForAnEnd(wait_ns);
    }
    if (deadline.PassedAt(MonotonicNanos())) return false;
  }
}

absl::Status KillAll(Ender& ender, Deadline deadline) {
  constexpr int64_t kFirstPauseNs = 1'000'000;
  int64_t pause_ns = kFirstPauseNs;
  bool is_last = false;
  for (Emptiness emptiness;;) {
    if (absl::Status status = ender.LookAndKill(); !status.ok()) return status;
    emptiness.Count(ender);
    if (emptiness.IsSure() || is_last) return absl::OkStatus();
    if (emptiness.IsAny()) continue;
    // Those that fork leave no time; those that will not go have time.
    pause_ns = ender.found_new() ? kFirstPauseNs
                                 : std::min(pause_ns * 2, kLongestPauseNs);
    ender.WaitForAnEnd(pause_ns);
    is_last = deadline.PassedAt(MonotonicNanos());
  }
}

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
  const absl::StatusOr<bool> all_gone =
      AskToEnd(ender, Deadline::After(grace_secs));
  if (!all_gone.ok()) return all_gone.status();
  if (!*all_gone) {
    if (absl::Status s = KillAll(ender, deadline); !s.ok()) return s;
  }
  return ender.TakeResult();
}

absl::StatusOr<size_t> SignalTree(const TreeQuery& query, int signal) {
  // Of a run that starts processes all the time each scan finds a new one.
  constexpr int kMostScans = 100;
  TreeScanner scanner(query);
  std::set<Key> sent;
  absl::Status refused;
  for (int i = 0; i < kMostScans; ++i) {
    const absl::StatusOr<std::vector<TreeMember>> members =
        scanner.Scan([](const TreeMember&) {});
    if (!members.ok()) return members.status();
    bool found_new = false;
    for (const TreeMember& member : *members) {
      if (!sent.insert(KeyOf(member.identity)).second) continue;
      found_new = true;
      const absl::StatusOr<UniqueFd> pidfd = OpenProcess(member.identity);
      const absl::Status status =
          pidfd.ok() ? SignalProcess(pidfd->get(), signal) : pidfd.status();
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
