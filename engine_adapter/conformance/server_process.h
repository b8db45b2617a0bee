// ServerProcess: an engine server in a process of its own, for tests.
//
// Data flow: command -> fork, exec -> its region, its stderr, its exit code.
// Ownership: the test; destruction kills and reaps it, and so does the test's
// own death.
//
//   ServerProcess server({"engine_adapter/reference/server", "--name=x"});
//   server.Signal(SIGTERM);
//   EXPECT_EQ(server.ExitCode(), 0);

#ifndef TANDEM_ENGINE_ADAPTER_CONFORMANCE_SERVER_PROCESS_H_
#define TANDEM_ENGINE_ADAPTER_CONFORMANCE_SERVER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/os/unique_fd.h"

namespace tandem {

class ServerProcess {
 public:
  // `inherited_fd` stays open in the server; -1: none. Aborts on what cannot
  // fail in a test.
  explicit ServerProcess(std::vector<std::string> command,
                         int inherited_fd = -1);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal_number) const;
  // Waits for its end. -1 if a signal ended it.
  int ExitCode();
  // What it has written to stderr so far.
  std::string Stderr() const;

 private:
  UniqueFd stderr_;  // a file in memory
  pid_t pid_;
  bool reaped_ = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CONFORMANCE_SERVER_PROCESS_H_
