#include "engine_adapter/host/gateway_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "base/quoted.h"

namespace tandem {
namespace {

constexpr char kVariable[] = "TANDEM_GATEWAY";
constexpr int kRefusedCommandLine = 2;
constexpr size_t kLongestLine = 4096;

// In a wheel the program is beside the engine's server; in a build tree it is
// in the folder of its package. An engine in Python is a Python program.
absl::StatusOr<std::string> FindProgram() {
  std::vector<std::string> places;
  if (const char* const named = std::getenv(kVariable); named != nullptr) {
    places.emplace_back(named);
  } else {
    std::error_code error;
    const auto folder =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    places.push_back(folder / "tandem-gateway");
    places.push_back(folder.parent_path().parent_path() /
                     "gateway/tandem-gateway");
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) == 0) return place;
  }
  return MakeError(
      ErrorCode::kEngineFailed,
      absl::StrCat(
          "--grpc: expected the program tandem-gateway, found none at ",
          absl::StrJoin(places, ", "), "; next: set ", kVariable,
          " to its path"));
}

// Returns the pid, or -1; errno has the reason.
pid_t Spawn(const std::vector<std::string>& words, int output) {
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = -1;
  errno = posix_spawn(&pid, argv[0], &actions, /*attrp=*/nullptr, argv.data(),
                      environ);
  posix_spawn_file_actions_destroy(&actions);
  return errno == 0 ? pid : -1;
}

// Returns the first line without its end; "" if there is none.
std::string ReadLine(int fd) {
  std::string line;
  char byte = 0;
  while (line.size() < kLongestLine) {
    const ssize_t count = read(fd, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

// Returns its status of wait, or -1 if it has not ended before the deadline.
int WaitUntil(pid_t pid, Deadline deadline) {
  constexpr useconds_t kLookUs = 5'000;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return 0;  // another part has waited
    if (deadline.PassedAt(MonotonicNanos())) return -1;
    usleep(kLookUs);
  }
}

int EndProcess(pid_t pid) {
  kill(pid, SIGTERM);
  const int status = WaitUntil(pid, Deadline::After(GatewayProcess::kStopSecs));
  if (status != -1) return status;
  kill(pid, SIGKILL);
  return WaitUntil(pid, Deadline::Infinite());
}

}  // namespace

absl::StatusOr<GatewayProcess> GatewayProcess::Start(
    const std::string& listen, const std::string& region) {
  TANDEM_ASSIGN_OR_RETURN(const std::string program, FindProgram());
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return MakeSystemError("pipe2", "--grpc", errno);
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t pid = Spawn(
      {program, absl::StrCat("--name=", region),
       absl::StrCat("--listen=", listen), absl::StrCat("--parent=", getpid())},
      writer.get());
  if (pid < 0) return MakeSystemError("posix_spawn", program, errno);
  writer.reset();
  std::string line = ReadLine(reader.get());
  if (!line.empty()) return GatewayProcess(pid, std::move(line));
  const int status = EndProcess(pid);
  const bool refused =
      WIFEXITED(status) && WEXITSTATUS(status) == kRefusedCommandLine;
  return MakeError(
      refused ? ErrorCode::kInvalidArgument : ErrorCode::kEngineFailed,
      absl::StrCat("--grpc: expected that tandem-gateway listens at ",
                   Quoted(listen), ", found that it ",
                   WIFEXITED(status)
                       ? absl::StrCat("exited with ", WEXITSTATUS(status))
                       : absl::StrCat("ended by signal ", WTERMSIG(status)),
                   "; its own line above says why"));
}

GatewayProcess::~GatewayProcess() {
  if (pid_ >= 0) EndProcess(pid_);
}

}  // namespace tandem
