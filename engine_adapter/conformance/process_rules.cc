// Processes: starts, ends and command lines of the engine's program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "engine_adapter/conformance/server_process.h"
#include "engine_adapter/conformance/suite_arguments.h"
#include "schema/layout/error_codes.h"
#include "transport/client_side.h"

namespace tandem {
namespace {

class Processes : public EngineRule {
 protected:
  void ExpectPeerGone() {
    ErrorCode code = engine_.client->Send(arrays().actions);
    if (code == ErrorCode::kOk) {
      code = engine_.client->Recv(Deadline::Infinite());
    }
    EXPECT_EQ(code, ErrorCode::kPeerGone);
  }
  // The engine's command, by a shell's script that ends with exec "$@".
  std::vector<std::string> InShell(const char* script,
                                   const std::vector<std::string>& flags = {}) {
    std::vector<std::string> command = engine_.Command(flags);
    command.insert(command.begin(), {"/bin/sh", "-c", script, "sh"});
    return command;
  }
  void StopBy(int signal_number) {
    Begin();
    Step();
    engine_.server->Signal(signal_number);
    engine_.server->Signal(signal_number);  // as timeout(1) and terminals do
    EXPECT_EQ(engine_.server->ExitCode(), 0);
    EXPECT_FALSE(AnyTraceInSharedMemory());
    ExpectPeerGone();
  }
};

TEST_F(Processes, ASecondClientIsRefused) {
  Begin();
  const absl::StatusOr<ClientSide> second =
      ClientSide::Attach(engine_.name, {});
  EXPECT_EQ(CodeOf(second.status()), ErrorCode::kAlreadyAttached);
  Step();
}

TEST_F(Processes, SigtermStopsTheEngineAndTheClientGetsPeerGone) {
  StopBy(SIGTERM);
}

TEST_F(Processes, SigintStopsTheEngineAndTheClientGetsPeerGone) {
  StopBy(SIGINT);
}

TEST_F(Processes, ExitsWhenItsLauncherExits) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  engine_.server = std::make_unique<ServerProcess>(
      engine_.Command({absl::StrCat("--launcher_fd=", read_end.get())}),
      read_end.get());
  read_end.reset();
  Attach();
  Step();
  write_end.reset();
  EXPECT_EQ(engine_.server->ExitCode(), 0);
  EXPECT_FALSE(AnyTraceInSharedMemory());
  EXPECT_TRUE(absl::StrContains(engine_.server->Stderr(), "launcher"))
      << engine_.server->Stderr();
}

TEST_F(Processes, ASecondEngineOfTheNameIsRefused) {
  Begin();
  ServerProcess second(engine_.Command({}));
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_TRUE(absl::StrContains(second.Stderr(), "AlreadyAttached"))
      << second.Stderr();
  Step();  // the first engine still serves
}

TEST_F(Processes, RunsWithoutStandardStreams) {
  engine_.server =
      std::make_unique<ServerProcess>(InShell("exec \"$@\" <&- >&- 2>&-"));
  Attach();
  Step();
}

// The limit is necessary: memory may have room for all of a small engine. An
// engine in Python may import NumPy, whose threads reserve memory.
TEST_F(Processes, SizesBeyondMemoryPrintOneLine) {
  constexpr char kLimited[] =
      "ulimit -v 1000000 && export OPENBLAS_NUM_THREADS=1 && exec \"$@\"";
  engine_.server = std::make_unique<ServerProcess>(InShell(kLimited));
  if (!engine_.Attach().ok()) {  // such as .NET's, or the driver of a GPU
    GTEST_SKIP() << "engine whose runtime reserves more addresses than this "
                    "rule allows";
  }
  engine_.End();
  for (const char* envs : {"4294967295", "16777216"}) {
    ServerProcess server(
        InShell(kLimited, {absl::StrCat("--num_envs=", envs)}));
    EXPECT_GT(server.ExitCode(), 0) << envs;
    EXPECT_TRUE(absl::StrContains(server.Stderr(), "error: "))
        << server.Stderr();
    EXPECT_FALSE(AnyTraceInSharedMemory());
  }
}

TEST_F(Processes, AKilledEngineCanBeStartedAgainUnderItsName) {
  Begin();
  Step();
  engine_.server->Signal(SIGKILL);
  ASSERT_EQ(engine_.server->ExitCode(), -1);
  ExpectPeerGone();
  engine_.Start();
  Require(engine_.client->Reconnect(SuiteArguments::Get().rule_secs));
  Step();
  engine_.server->Signal(SIGTERM);
  EXPECT_EQ(engine_.server->ExitCode(), 0);
  EXPECT_FALSE(AnyTraceInSharedMemory());
}

TEST_F(Processes, WrongCommandLinePrintsOneLineAndExitsWith2) {
  for (const std::string flag :
       {"--no_such_flag", "--num_envs=many", "--num_envs=0", "--wait=never",
        "--name=a/b", "--launcher_fd=987"}) {
    ServerProcess server(engine_.Command({flag}));
    EXPECT_EQ(server.ExitCode(), 2) << flag;
    const std::string text = server.Stderr();
    EXPECT_TRUE(absl::StrContains(text, "error: InvalidArgument: ")) << text;
    EXPECT_TRUE(absl::StrContains(text, "expected")) << text;
  }
  EXPECT_FALSE(AnyTraceInSharedMemory());
}

TEST_F(Processes, HelpListsFlags) {
  ServerProcess server(engine_.Command({"--help"}));
  EXPECT_EQ(server.ExitCode(), 0);
  EXPECT_EQ(server.Stderr(), "");
  EXPECT_TRUE(absl::StrContains(server.Stdout(), "--num_envs"));
}

}  // namespace
}  // namespace tandem
