#include "slow_lane/ctl/watch_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"
#include "slow_lane/ctl/exit_code.h"

namespace tandem::slow_lane {
namespace {

using testing::HasSubstr;

struct Watched {
  std::string shown;  // and what it said on standard error
  int exit_code = -1;
};

// One look for a daemon that is not there, on a terminal of that `kind`, TERM.
Watched WatchNobody(const WatchCommand& command, const char* kind) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("TERM", kind, 1);
    BlockWatchSignals();
    raise(SIGINT);  // it waits for the first look to be shown
    Connection daemon("unix:/nonesuch/daemon.sock", "by a test");
    _exit(RunWatch(&daemon, command));
  }
  Watched watched;
  std::array<char, 1024> block;
  for (;;) {  // to the end: EIO, once nobody has the other side open
    const ssize_t bytes = read(terminal, block.data(), block.size());
    if (bytes > 0) watched.shown.append(block.data(), size_t(bytes));
    if (bytes <= 0) break;
  }
  close(terminal);
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  if (WIFEXITED(how)) watched.exit_code = WEXITSTATUS(how);
  return watched;
}

TEST(RunWatch, WaitsForTheDaemonThatTookTheRunJustNow) {
  for (const char* const kind : {"xterm", "dumb"}) {
    const Watched watched =
        WatchNobody({.run_id = "run", .submitted = true}, kind);
    EXPECT_EQ(watched.exit_code, kDone) << watched.shown;
    EXPECT_THAT(watched.shown, HasSubstr("waiting for the daemon at unix:/"));
  }
}

TEST(RunWatch, FailsWhereNoDaemonWasMet) {
  const Watched watched =
      WatchNobody({.run_id = "run", .submitted = false}, "xterm");
  EXPECT_EQ(watched.exit_code, kFailed);
  EXPECT_THAT(watched.shown, HasSubstr("Next: start one"));
}

}  // namespace
}  // namespace tandem::slow_lane
