// ProcessIdentity: identifies a process, also after another one got its pid.
// TreeQuery and TreeMember: a search for a run's processes, and one of its
// results.
//
// Data flow: /proc/PID/stat -> IdentityOf -> a file or message -> after any
// restart, OpenProcess -> a pidfd of the same process, or none.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  std::string boot_id;

  bool operator==(const ProcessIdentity&) const = default;
};

v1::ProcessIdentity ToProto(const ProcessIdentity& identity);
ProcessIdentity FromProto(const v1::ProcessIdentity& proto);

// The content of /proc/PID/stat. Plain values.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  char state = '?';         // ps's letter
  int64_t threads = 0;
  // The program's name: up to 15 bytes of any value, inside the parsed text.
  absl::string_view name;

  // False for a zombie, and for a process that the kernel is removing. A
  // process whose first thread has ended while others run shows Z, and lives.
  bool IsAlive() const {
    return (state != 'Z' && state != 'X' && state != 'x') || threads > 1;
  }
};

// Parses the text of a stat file, with any program name; nullopt if it is
// invalid. Neither allocates nor makes a system call, so a forked child may
// call it.
std::optional<ProcessStat> ParseProcessStat(absl::string_view text);

// Reads the stat file of an existing process, zombies included; `buffer` gets
// the text that contains the name. kNotFound: no such process. One file read.
absl::StatusOr<ProcessStat> ReadProcessStat(pid_t pid, std::string* buffer);

// Returns the kernel's id of this boot; empty if /proc lacks it. Read once.
const std::string& BootId();

// Returns the identity of a process. kNotFound: no process has this pid.
absl::StatusOr<ProcessIdentity> IdentityOf(pid_t pid);

// Whether this same process exists and is no zombie. One file read.
bool IsAlive(const ProcessIdentity& identity);

// Returns the seconds since the process's start, including suspended time, and
// independent of clock changes. 0 for a process of another boot, which has
// ended.
double SecondsSinceStart(const ProcessIdentity& process);

// Returns a pidfd of this same process, which may be a zombie; never of another
// process with its pid, since the identity is checked after the open.
// kNotFound: the process is gone, or the pid belongs to another process.
absl::StatusOr<UniqueFd> OpenProcess(const ProcessIdentity& identity);

// Sends a signal to the process of a pidfd. kNotFound: it is gone.
// kPermissionDenied: another user owns it.
absl::Status SignalProcess(int pidfd, int signal);

struct TreeQuery {
  std::string token;  // empty: no search by token
  // These processes belong to the tree while they exist; other processes with
  // their pids do not.
  std::vector<ProcessIdentity> roots;
  // Never members; neither are the caller and process 1. The children of an
  // excluded process belong if it is a root.
  std::vector<pid_t> excluded;
};

// Returns the query for all processes of a run except the proxy, as far as
// these are known. An orphan is the proxy's child.
inline TreeQuery QueryOf(const std::string& token,
                         const std::optional<ProcessIdentity>& worker,
                         const std::optional<ProcessIdentity>& proxy) {
  TreeQuery query;
  query.token = token;
  if (worker.has_value()) query.roots.push_back(*worker);
  if (proxy.has_value()) {
    query.roots.push_back(*proxy);
    query.excluded.push_back(proxy->pid);
  }
  return query;
}

struct TreeMember {
  ProcessIdentity identity;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::string name;  // the program's name, at most 15 bytes
};

}  // namespace tandem::slow_lane
