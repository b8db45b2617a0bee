// ServerProcess: an engine's program in a process of its own. RuleWatchdog: the
// end of a rule that waits too long.
//
// Data flow: command -> fork, exec -> its region, its output, its exit code.
// Ownership: the rule; destruction kills and reaps the process, and so does the
// suite's own end.
//
//   const RuleWatchdog watchdog;
//   ServerProcess server({"conformance/reference/server", "--name=x"});
//   server.Signal(SIGTERM);
//   EXPECT_EQ(server.ExitCode(), 0);

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/os/unique_fd.h"

namespace tandem {

class ServerProcess {
 public:
  // `inherited_fd` stays open in the server; -1: none. Aborts if the system has
  // no room for a process.
  explicit ServerProcess(std::vector<std::string> command,
                         int inherited_fd = -1);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Signal(int signal_number) const;
  // Whether it has ended; does not wait.
  bool HasEnded() const;
  // Waits for its end and reaps it. -1 if a signal ended it.
  int ExitCode();
  // What it has written so far.
  std::string Stdout() const;
  std::string Stderr() const;
  // The last lines of its stderr, for a message.
  std::string LastLines() const;

  // Ends all processes of the suite, then the suite, as the signal does. The
  // servers get SIGTERM, and some seconds to remove their regions. A signal
  // handler.
  static void EndSuite(int signal_number);

 private:
  UniqueFd stdout_;  // files in memory
  UniqueFd stderr_;
  pid_t pid_;
  std::optional<int> exit_code_;  // of a reaped process
};

// Kills all servers --rule_secs after its construction, so that waits for them
// end. One at a time.
class RuleWatchdog {
 public:
  RuleWatchdog();
  ~RuleWatchdog();
  RuleWatchdog(const RuleWatchdog&) = delete;
  RuleWatchdog& operator=(const RuleWatchdog&) = delete;

  // Whether the newest one has killed the servers.
  static bool HasKilled();
};

}  // namespace tandem
