// ProcessIdentity: a process, so that no other one with its number is taken
// for it. TreeQuery and TreeMember: which run's processes are meant, and one of
// them.
//
// Data flow: /proc/PID/stat -> IdentityOf -> a file or message -> after
// whatever restart, OpenProcess -> a pidfd of that very process or none.
//
//   absl::StatusOr<ProcessIdentity> worker = IdentityOf(pid);
//   absl::StatusOr<UniqueFd> process = OpenProcess(*worker);
//   if (absl::IsNotFound(process.status())) ...  // it is gone
//   SignalProcess(process->get(), SIGTERM);

#ifndef TANDEM_SLOW_LANE_RUNS_PROCESS_IDENTITY_H_
#define TANDEM_SLOW_LANE_RUNS_PROCESS_IDENTITY_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  std::string boot_id;

  friend bool operator==(const ProcessIdentity&,
                         const ProcessIdentity&) = default;
};

v1::ProcessIdentity ToProto(const ProcessIdentity& identity);
ProcessIdentity FromProto(const v1::ProcessIdentity& proto);

// What /proc/PID/stat says of a process. Plain values.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  char state = '?';         // as ps shows it
  int64_t threads = 0;
  // The program's name: up to 15 bytes of any kind, within the parsed text.
  absl::string_view name;

  // False for a zombie and for what is being taken away. A process whose first
  // thread has ended while others run shows Z, and lives.
  bool IsAlive() const {
    return (state != 'Z' && state != 'X' && state != 'x') || threads > 1;
  }
};

// Of the whole text of a stat file, whatever is in the name; nothing if it is
// none. Neither allocates nor makes a system call: a forked child may call it.
std::optional<ProcessStat> ParseProcessStat(absl::string_view text);

// Of a process that exists, zombies included; `buffer` receives the text that
// the name lies in. kNotFound: there is none. One file read.
absl::StatusOr<ProcessStat> ReadProcessStat(pid_t pid, std::string* buffer);

// This boot of this machine, as the kernel names it; empty where /proc does
// not. Read once.
const std::string& BootId();

// kNotFound: no process has that number.
absl::StatusOr<ProcessIdentity> IdentityOf(pid_t pid);

// Whether that very process exists and is no zombie. One file read.
bool IsAlive(const ProcessIdentity& identity);

// Since the process started, suspended times included; changes of the clock do
// not matter. 0 for a process of another boot: it ended with its machine.
double SecondsSinceStart(const ProcessIdentity& process);

// A pidfd of that very process, which may be a zombie; of another one with its
// number never: the identity is read again once the descriptor is open.
// kNotFound: it is gone, or the number is another's by now.
absl::StatusOr<UniqueFd> OpenProcess(const ProcessIdentity& identity);

// Sends to the process of a pidfd. kNotFound: it is gone. kPermissionDenied:
// it is another user's.
absl::Status SignalProcess(int pidfd, int signal);

struct TreeQuery {
  std::string token;  // empty: no process belongs by a token
  // Belong while they exist; others with their numbers do not.
  std::vector<ProcessIdentity> roots;
  // Left alone, and so are the caller and process 1 at any rate. The children
  // of an excluded process belong if it is a root.
  std::vector<pid_t> excluded;
};

// Of a run: all of its processes but the proxy, as far as these are known. An
// orphan is the proxy's child.
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
  std::string name;  // the program's, 15 bytes at most
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_PROCESS_IDENTITY_H_
