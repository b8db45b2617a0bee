// Real processes for tests: a folder of the test's own, waits with an end, and
// what is known of a process.
//
// Data flow: the test starts hostile_worker, which writes each process's name
// and number into a file -> WaitForLines -> the test acts -> IsGone.
//
//   const TestFolder folder;
//   ... hostile_worker tree FILE ...
//   WaitUntil("four processes", [&] { return ReadLines(file).size() == 4; });

#ifndef TANDEM_SLOW_LANE_RUNS_TESTING_TEST_PROCESSES_H_
#define TANDEM_SLOW_LANE_RUNS_TESTING_TEST_PROCESSES_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// A new folder, removed with all that is in it.
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

// The program that the tests run; absolute.
std::string HostileWorker();

// Complete lines of a file; none if it does not exist.
std::vector<std::string> ReadLines(const std::string& path);

// Waits as long as it takes; after two minutes it ends the program with
// `what`, for nothing that a test waits for takes so long.
void WaitUntil(absl::string_view what, const std::function<bool()>& is_so);

// Whether there is no such process, or only its zombie.
bool IsGone(pid_t pid);

// Starts a program and returns its number. What it prints is the test's.
pid_t StartProgram(const std::vector<std::string>& argv,
                   const std::vector<std::string>& environment);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_TESTING_TEST_PROCESSES_H_
