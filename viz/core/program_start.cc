#include "viz/core/program_start.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"

namespace tandem {

std::optional<std::string> FirstExecutable(std::vector<std::string> files,
                                           absl::string_view name) {
  if (const char* path = std::getenv("PATH")) {
    for (const absl::string_view folder : absl::StrSplit(path, ':')) {
      files.push_back(absl::StrCat(folder, "/", name));
    }
  }
  for (std::string& file : files) {
    if (access(file.c_str(), X_OK) == 0) return std::move(file);
  }
  return std::nullopt;
}

absl::StatusOr<std::string> FindProgram(absl::string_view name,
                                        absl::string_view folder) {
  std::vector<std::string> beside;
  std::array<char, 4096> self;
  const ssize_t bytes = readlink("/proc/self/exe", self.data(), self.size());
  if (bytes > 0) {
    const absl::string_view program(self.data(), static_cast<size_t>(bytes));
    beside.push_back(
        absl::StrCat(program.substr(0, program.rfind('/') + 1), name));
  }
  if (auto found = FirstExecutable(std::move(beside), name)) return *found;
  const std::string built = absl::StrCat(folder, name);
  if (access(built.c_str(), X_OK) == 0) return built;
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("expected the program ", name,
                                ", found it neither beside this program nor in "
                                "PATH; next: start it by hand"));
}

absl::StatusOr<pid_t> StartProgram(std::vector<std::string> words,
                                   const ProgramFiles& files) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup free = [&] {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  };
  posix_spawn_file_actions_adddup2(&actions, files.input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, files.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, files.errors, STDERR_FILENO);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, words[0].c_str(), &actions, &attributes,
                                arguments.data(), environ);
  if (error != 0) return MakeSystemError("posix_spawn", words[0], error);
  return pid;
}

}  // namespace tandem
