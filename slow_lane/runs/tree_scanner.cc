#include "slow_lane/runs/tree_scanner.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/unique_fd.h"

namespace tandem::slow_lane {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

absl::Status Unavailable(const absl::Status& status) {
  return absl::UnavailableError(status.message());
}

// Returns the names of files in a folder of /proc that are numbers.
absl::StatusOr<std::vector<pid_t>> ListNumbers(const std::string& path) {
  const Folder folder(opendir(path.c_str()), &closedir);
  if (folder == nullptr) {
    return Unavailable(MakeSystemError("opendir", path, errno));
  }
  std::vector<pid_t> numbers;
  while (const dirent* const entry = readdir(folder.get())) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

TreeScanner::TreeScanner(const TreeQuery& query)
    : roots_(query.roots),
      token_(query.token),
      excluded_(query.excluded.begin(), query.excluded.end()) {
  excluded_.insert({0, 1, getpid()});
}

absl::StatusOr<bool> TreeScanner::SeeOne(pid_t pid, bool is_chased) {
  const absl::StatusOr<ProcessStat> stat = ReadProcessStat(pid, &stat_text_);
  if (absl::IsNotFound(stat.status()) ||
      absl::IsPermissionDenied(stat.status())) {
    return false;
  }
  if (!stat.ok()) return Unavailable(stat.status());
  Seen seen;
  seen.process = {.identity = {.pid = pid,
                               .start_time = stat->start_time,
                               .boot_id = BootId()},
                  .parent = stat->parent,
                  .group = stat->group,
                  .session = stat->session,
                  .name = std::string(stat->name)};
  seen.alive = stat->IsAlive();
  if (seen.alive && !IsExcluded(pid)) {
    if (is_chased && IsLedOrOrphaned(*stat)) {
      seen.belongs = true;
    } else {
      const absl::StatusOr<bool> has_token = token_.IsOf(*stat);
      if (!has_token.ok()) return Unavailable(has_token.status());
      seen.belongs = *has_token;
    }
  }
  seen_[pid] = std::move(seen);
  return true;
}

bool TreeScanner::IsLedOrOrphaned(const ProcessStat& stat) const {
  return led_sessions_.contains(stat.session) ||
         led_groups_.contains(stat.group) ||
         std::ranges::any_of(roots_, [&](const ProcessIdentity& root) {
           const auto seen = seen_.find(root.pid);
           return stat.parent == root.pid && seen != seen_.end() &&
                  seen->second.process.identity == root;
         });
}

// Finds a chain of processes that each fork and exit at once. None of them
// lives from the listing of /proc to the read of its files. So this function
// reads the newest process as soon as its pid is known.
absl::Status TreeScanner::Chase(const Act& act) {
  constexpr int64_t kLongEnoughNs = 5'000'000;
  const UniqueFd file(open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  const Deadline end = Deadline::At(MonotonicNanos() + kLongEnoughNs);
  pid_t last = 0;
  while (!end.PassedAt(MonotonicNanos())) {
    std::array<char, 128> text;
    const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
    if (size <= 0) break;
    const absl::string_view load = absl::StripTrailingAsciiWhitespace(
        absl::string_view(text.data(), static_cast<size_t>(size)));
    pid_t newest = 0;
    if (!absl::SimpleAtoi(load.substr(load.rfind(' ') + 1), &newest)) break;
    if (newest == last) {
      sched_yield();
      continue;
    }
    // Other processes and threads also take pids meanwhile; threads are
    // skipped.
    constexpr pid_t kMostNewer = 16;
    const pid_t first =
        last < newest ? std::max(last, newest - kMostNewer) + 1 : newest;
    for (pid_t pid = newest; pid >= first; --pid) {
      if (syscall(SYS_tgkill, pid, pid, 0) != 0 && errno != EPERM) continue;
      TANDEM_ASSIGN_OR_RETURN(const bool seen, SeeOne(pid, /*is_chased=*/true));
      if (seen && seen_[pid].belongs) act(seen_[pid].process);
    }
    last = newest;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TreeScanner::See() {
  seen_.clear();
  TANDEM_ASSIGN_OR_RETURN(const std::vector<pid_t> pids, ListNumbers("/proc"));
  bool all_lived = true;
  std::set<Zombie> zombies;
  for (const pid_t pid : pids) {
    TANDEM_ASSIGN_OR_RETURN(const bool is_there,
                            SeeOne(pid, /*is_chased=*/false));
    if (!is_there) {
      all_lived = false;
    } else if (const Seen& seen = seen_[pid]; !seen.alive) {
      const Zombie zombie(pid, seen.process.identity.start_time);
      all_lived &= zombies_.contains(zombie);
      zombies.insert(zombie);
    }
  }
  zombies_ = std::move(zombies);
  return all_lived;
}

// Marks all processes that belong to the tree by their relation to others.
void TreeScanner::Follow() {
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

// Forgets the ids of empty sessions and groups: the kernel may reuse them.
void TreeScanner::ForgetEmpty() {
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

void TreeScanner::FindLeaders() {
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

absl::StatusOr<std::vector<TreeMember>> TreeScanner::Scan(const Act& act) {
  TANDEM_ASSIGN_OR_RETURN(is_sure_, See());
  ForgetEmpty();
  Follow();
  if (!is_sure_) {
    // `act` may end processes only after the first Follow, which has found
    // their children without a token.
    TANDEM_RETURN_IF_ERROR(Chase(act));
    Follow();
  }
  FindLeaders();
  std::vector<TreeMember> members;
  for (const auto& [pid, seen] : seen_) {
    if (seen.belongs && seen.alive) members.push_back(seen.process);
  }
  return members;
}

}  // namespace tandem::slow_lane
