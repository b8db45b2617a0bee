#include "slow_lane/runs/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/base/error.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;
// What tells processes of one boot apart.
using Key = std::pair<pid_t, uint64_t>;

Key KeyOf(const ProcessIdentity& identity) {
  return {identity.pid, identity.start_time};
}

// The numbers that a folder of /proc has files for.
absl::StatusOr<std::vector<pid_t>> ListNumbers(const std::string& path) {
  const Folder folder(opendir(path.c_str()), &closedir);
  if (folder == nullptr) {
    return absl::UnavailableError(
        MakeSystemError("opendir", path, errno).message());
  }
  std::vector<pid_t> numbers;
  while (const dirent* const entry = readdir(folder.get())) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  return numbers;
}

// An environment with a NUL before and behind each entry. False: it cannot be
// read, as those of other users' processes.
bool ReadEnvironment(const std::string& path, std::string* environment) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  environment->assign(1, '\0');
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    environment->append(piece.data(), static_cast<size_t>(got));
  }
  // A process may have overwritten the end of it.
  environment->push_back('\0');
  return true;
}

// An entry's beginning, with the NUL before it.
std::string TokenEntry(absl::string_view token) {
  return absl::StrCat(absl::string_view("\0", 1), kRunTokenVariable, "=",
                      token);
}

// Finds the tree again and again, and remembers between scans which sessions
// and groups it led: their leaders may be gone by the next one.
class Scanner {
 public:
  explicit Scanner(const TreeQuery& query);

  // Who is alive. Afterwards Leaders are of this scan, too.
  absl::StatusOr<std::vector<TreeMember>> Scan();

  // Those that lead a process group with nobody excluded in it; some may be
  // zombies.
  const std::vector<ProcessIdentity>& Leaders() const { return leaders_; }

 private:
  struct Seen {
    TreeMember process;
    bool alive = false;
    bool belongs = false;
  };

  bool IsExcluded(pid_t pid) const { return excluded_.contains(pid); }
  bool HasToken(pid_t pid, bool first_thread_is_gone);
  bool FileHasToken(const std::string& path);
  absl::Status See();
  void Follow();
  void ForgetEmpty();
  void FindLeaders();

  const std::vector<ProcessIdentity> roots_;
  const std::string entry_;  // of an environment, NULs around it
  std::set<pid_t> excluded_;

  std::map<pid_t, Seen> seen_;
  // Sessions and groups that processes of the tree led, by number, with the
  // leader's start.
  std::map<pid_t, uint64_t> led_sessions_;
  std::map<pid_t, uint64_t> led_groups_;
  std::vector<ProcessIdentity> leaders_;
  std::string buffer_;
};

Scanner::Scanner(const TreeQuery& query)
    : roots_(query.roots),
      entry_(query.token.empty() ? "" : TokenEntry(query.token) + '\0'),
      excluded_(query.excluded.begin(), query.excluded.end()) {
  excluded_.insert({0, 1, getpid()});
}

bool Scanner::FileHasToken(const std::string& path) {
  return ReadEnvironment(path, &buffer_) && absl::StrContains(buffer_, entry_);
}

bool Scanner::HasToken(pid_t pid, bool first_thread_is_gone) {
  if (entry_.empty()) return false;
  const std::string process = absl::StrCat("/proc/", pid);
  if (!first_thread_is_gone) return FileHasToken(process + "/environ");
  const std::string tasks = process + "/task";
  const auto threads = ListNumbers(tasks);
  return threads.ok() && std::ranges::any_of(*threads, [&](pid_t thread) {
           return FileHasToken(absl::StrCat(tasks, "/", thread, "/environ"));
         });
}

absl::Status Scanner::See() {
  seen_.clear();
  const absl::StatusOr<std::vector<pid_t>> pids = ListNumbers("/proc");
  if (!pids.ok()) return pids.status();
  std::string text;
  for (const pid_t pid : *pids) {
    const absl::StatusOr<ProcessStat> stat = ReadProcessStat(pid, &text);
    if (!stat.ok()) continue;  // gone meanwhile
    Seen& seen = seen_[pid];
    seen.process = {.identity = {.pid = pid,
                                 .start_time = stat->start_time,
                                 .boot_id = BootId()},
                    .parent = stat->parent,
                    .group = stat->group,
                    .session = stat->session,
                    .name = std::string(stat->name)};
    seen.alive = stat->IsAlive();
    seen.belongs = seen.alive && !IsExcluded(pid) &&
                   HasToken(pid, /*first_thread_is_gone=*/stat->state == 'Z');
  }
  return absl::OkStatus();
}

// From those that belong to all that belong by them.
void Scanner::Follow() {
  std::multimap<pid_t, pid_t> by_parent, by_group, by_session;
  std::vector<pid_t> to_visit;
  for (const auto& [pid, seen] : seen_) {
    by_parent.emplace(seen.process.parent, pid);
    by_group.emplace(seen.process.group, pid);
    by_session.emplace(seen.process.session, pid);
    if (seen.belongs) to_visit.push_back(pid);
  }
  const auto add = [this, &to_visit](const std::multimap<pid_t, pid_t>& by,
                                     pid_t key) {
    const auto [begin, end] = by.equal_range(key);
    for (auto each = begin; each != end; ++each) {
      Seen& seen = seen_[each->second];
      if (seen.belongs || IsExcluded(each->second)) continue;
      seen.belongs = true;
      to_visit.push_back(each->second);
    }
  };
  for (const ProcessIdentity& root : roots_) {
    const auto found = seen_.find(root.pid);
    if (found == seen_.end() || found->second.process.identity != root) {
      continue;
    }
    if (IsExcluded(root.pid)) {
      add(by_parent, root.pid);
    } else if (!found->second.belongs) {
      found->second.belongs = true;
      to_visit.push_back(root.pid);
    }
  }
  for (const auto& [session, start] : led_sessions_) add(by_session, session);
  for (const auto& [group, start] : led_groups_) add(by_group, group);
  while (!to_visit.empty()) {
    const pid_t pid = to_visit.back();
    to_visit.pop_back();
    const TreeMember& process = seen_[pid].process;
    add(by_parent, pid);
    if (process.group == pid) {
      led_groups_.emplace(pid, process.identity.start_time);
      add(by_group, pid);
    }
    if (process.session == pid) {
      led_sessions_.emplace(pid, process.identity.start_time);
      add(by_session, pid);
    }
  }
}

// A number stays a session's or group's own for as long as anybody is in it.
void Scanner::ForgetEmpty() {
  std::set<pid_t> groups, sessions;
  for (const auto& [pid, seen] : seen_) {
    groups.insert(seen.process.group);
    sessions.insert(seen.process.session);
  }
  const auto is_another = [this](const auto& led) {
    const auto now = seen_.find(led.first);
    return now != seen_.end() &&
           now->second.process.identity.start_time != led.second;
  };
  std::erase_if(led_groups_, [&](const auto& led) {
    return !groups.contains(led.first) || is_another(led);
  });
  std::erase_if(led_sessions_, [&](const auto& led) {
    return !sessions.contains(led.first) || is_another(led);
  });
}

void Scanner::FindLeaders() {
  std::set<pid_t> spared;
  for (const auto& [pid, seen] : seen_) {
    if (IsExcluded(pid)) spared.insert(seen.process.group);
  }
  leaders_.clear();
  for (const auto& [pid, seen] : seen_) {
    if (seen.belongs && seen.process.group == pid && !spared.contains(pid)) {
      leaders_.push_back(seen.process.identity);
    }
  }
}

absl::StatusOr<std::vector<TreeMember>> Scanner::Scan() {
  if (absl::Status status = See(); !status.ok()) return status;
  ForgetEmpty();
  Follow();
  FindLeaders();
  std::vector<TreeMember> members;
  for (const auto& [pid, seen] : seen_) {
    if (seen.belongs && seen.alive) members.push_back(seen.process);
  }
  return members;
}

// PIDFD_SIGNAL_PROCESS_GROUP: to a whole group at once, which leaves no time to
// fork. Kernels before 6.9 do not know it (EINVAL); there each of the group's
// processes is found one by one.
constexpr unsigned kToWholeGroup = 1u << 2;

// Signals a tree's processes, each by a descriptor, and waits for their ends.
class Ender {
 public:
  explicit Ender(const TreeQuery& query) : scanner_(query) {}

  // Looks for processes and takes up those that are new.
  absl::Status Look();
  // SIGTERM and SIGCONT to those that did not have it.
  void Ask();
  void Kill();
  // Until one of them ends, or `wait_ns` have passed.
  void WaitForAnEnd(int64_t wait_ns);
  // Whether the latest Look found nobody; whether it found somebody new.
  bool found_none() const { return members_.empty(); }
  bool found_new() const { return found_new_; }
  // Whether all that are waited for have ended.
  bool all_ended() const { return waiting_.empty(); }
  TreeEnd TakeResult();

 private:
  // The daemon needs descriptors, too, however many processes there are.
  static constexpr size_t kMostHeld = 128;

  void Send(const TreeMember& member, int signal);
  void HoldLeaders();

  Scanner scanner_;
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

absl::Status Ender::Look() {
  absl::StatusOr<std::vector<TreeMember>> members = scanner_.Scan();
  if (!members.ok()) return members.status();
  members_ = *std::move(members);
  found_new_ = false;
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

void Ender::Ask() {
  for (const TreeMember& member : members_) {
    if (!asked_.insert(KeyOf(member.identity)).second) continue;
    Send(member, SIGTERM);
    // One that is stopped acts only then.
    Send(member, SIGCONT);
  }
}

void Ender::HoldLeaders() {
  for (const ProcessIdentity& leader : scanner_.Leaders()) {
    if (leaders_.contains(KeyOf(leader))) continue;
    if (leaders_.size() >= kMostHeld) return;
    absl::StatusOr<UniqueFd> pidfd = OpenProcess(leader);
    if (pidfd.ok()) leaders_[KeyOf(leader)] = *std::move(pidfd);
  }
}

void Ender::Kill() {
  HoldLeaders();
  std::erase_if(leaders_, [](const auto& leader) {
    return syscall(SYS_pidfd_send_signal, leader.second.get(), SIGKILL, nullptr,
                   kToWholeGroup) != 0 &&
           errno == ESRCH;
  });
  for (const TreeMember& member : members_) Send(member, SIGKILL);
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

// A scan may overlook a process whose parent forks and ends meanwhile.
constexpr int kEmptyScans = 2;
constexpr int64_t kLongestPauseNs = 100'000'000;

// Returns whether nobody is left.
absl::StatusOr<bool> AskToEnd(Ender& ender, Deadline deadline) {
  for (int empty_scans = 0;;) {
    if (absl::Status status = ender.Look(); !status.ok()) return status;
    empty_scans = ender.found_none() ? empty_scans + 1 : 0;
    if (empty_scans == kEmptyScans) return true;
    ender.Ask();
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
  for (int empty_scans = 0;;) {
    if (absl::Status status = ender.Look(); !status.ok()) return status;
    empty_scans = ender.found_none() ? empty_scans + 1 : 0;
    if (empty_scans == kEmptyScans || is_last) return absl::OkStatus();
    ender.Kill();
    if (empty_scans > 0) continue;
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

std::optional<std::string> RunTokenOf(pid_t pid) {
  std::string environment;
  if (!ReadEnvironment(absl::StrCat("/proc/", pid, "/environ"), &environment)) {
    return std::nullopt;
  }
  const std::string entry = TokenEntry("");
  const size_t begin = environment.find(entry);
  if (begin == environment.npos) return std::nullopt;
  // Up to the NUL.
  return environment.c_str() + begin + entry.size();
}

absl::StatusOr<std::vector<TreeMember>> FindTree(const TreeQuery& query) {
  return Scanner(query).Scan();
}

absl::StatusOr<TreeEnd> EndTree(const TreeQuery& query, double grace_secs,
                                Deadline deadline) {
  Ender ender(query);
  const Deadline grace = Deadline::After(grace_secs);
  const absl::StatusOr<bool> all_gone =
      AskToEnd(ender, Deadline::At(std::min(grace.at_ns(), deadline.at_ns())));
  if (!all_gone.ok()) return all_gone.status();
  if (!*all_gone) {
    if (absl::Status s = KillAll(ender, deadline); !s.ok()) return s;
  }
  return ender.TakeResult();
}

absl::StatusOr<size_t> SignalTree(const TreeQuery& query, int signal) {
  // Of a run that starts processes all the time each scan finds a new one.
  constexpr int kMostScans = 100;
  Scanner scanner(query);
  std::set<Key> sent;
  absl::Status refused;
  for (int i = 0; i < kMostScans; ++i) {
    const absl::StatusOr<std::vector<TreeMember>> members = scanner.Scan();
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
