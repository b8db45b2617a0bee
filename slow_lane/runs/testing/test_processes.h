// Real processes for tests: a folder for the test, waits with a limit, and the
// state of a process.
//
// Data flow: the test starts hostile_worker, which writes each process's name
// and pid into a file -> ReadLines -> the test acts -> IsGone.
//
//   const TestFolder folder;
//   ... hostile_worker tree FILE ...
//   WaitUntil("four processes", [&] { return ReadLines(file).size() == 4; });

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// A new folder, removed with its content at the end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const;

 private:
  std::string path_;
};

// The absolute path of the program that the tests run.
std::string HostileWorker();

// The complete lines of a file; empty if it does not exist.
std::vector<std::string> ReadLines(const std::string& path);

// Waits until `is_so` returns true. After two minutes, longer than any wait of
// a test, ends the program with `what`.
void WaitUntil(absl::string_view what, const std::function<bool()>& is_so);

// Whether the process does not exist or is a zombie.
bool IsGone(pid_t pid);

// Starts a program and returns its pid; it inherits the test's stdout.
pid_t StartProgram(const std::vector<std::string>& argv,
                   const std::vector<std::string>& environment);

}  // namespace tandem::slow_lane
