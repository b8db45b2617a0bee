#include "slow_lane/runs/testing/test_processes.h"

#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

TestFolder::TestFolder() {
  const char* const base = getenv("TEST_TMPDIR");
  path_ = absl::StrCat(base != nullptr ? base : "/tmp", "/runs-XXXXXX");
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror(path_.c_str());
    abort();
  }
}

TestFolder::~TestFolder() { std::filesystem::remove_all(path_); }

std::string TestFolder::File(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string HostileWorker() {
  return std::filesystem::absolute("slow_lane/runs/hostile_worker").string();
}

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    // A line without a newline is incomplete.
    if (!file.eof()) lines.push_back(line);
  }
  return lines;
}

void WaitUntil(absl::string_view what, const std::function<bool()>& is_so) {
  const Deadline watchdog = Deadline::After(120);
  while (!is_so()) {
    if (watchdog.PassedAt(MonotonicNanos())) {
      std::fprintf(stderr, "watchdog: %s expected, not found in two minutes\n",
                   std::string(what).c_str());
      abort();
    }
    usleep(1000);
  }
}

bool IsGone(pid_t pid) {
  std::string buffer;
  const absl::StatusOr<ProcessStat> stat = ReadProcessStat(pid, &buffer);
  return !stat.ok() || !stat->IsAlive();
}

pid_t StartProgram(const std::vector<std::string>& argv,
                   const std::vector<std::string>& environment) {
  const auto pointers = [](const std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (const std::string& each : strings) {
      result.push_back(const_cast<char*>(each.c_str()));
    }
    result.push_back(nullptr);
    return result;
  };
  pid_t pid = -1;
  if (posix_spawn(&pid, argv[0].c_str(), nullptr, nullptr,
                  pointers(argv).data(), pointers(environment).data()) != 0) {
    std::perror(argv[0].c_str());
    abort();
  }
  return pid;
}

}  // namespace tandem::slow_lane
