// ChildProgram: a second process of a test, which runs one of its functions.
// Windows has no fork: the test's program is started again.
//
// Data flow: a name and arguments -> the program's main -> the function of that
// name -> its lines of output, its exit code.
// Ownership: the test. The destructor ends the process, which also never
// outlives the test's process.
//
//   const ChildBody kServe("serve", [](const std::vector<std::string>& words) {
//     return Serve(words[0]);
//   });
//   ChildProgram engine("serve", {name});
//   EXPECT_EQ(engine.ReadLine(), "ready");
//   engine.Kill();

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/os/unique_fd.h"

namespace tandem {

// Registers what a child of that name runs. Of a test's namespace.
class ChildBody {
 public:
  using Body = int (*)(const std::vector<std::string>& words);
  ChildBody(const char* name, Body body);
};

// For a child: prints a line for ReadLine.
void SayLine(const std::string& line);

class ChildProgram {
 public:
  // Starts this program for the body of that name, or any program: words[0] is
  // its path. Words have neither spaces nor quotes. Aborts the test after an
  // error.
  ChildProgram(const std::string& name, std::vector<std::string> words);
  explicit ChildProgram(const std::vector<std::string>& words);
  ~ChildProgram() { Kill(); }
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  // Returns its next line; "" after the end of its output.
  std::string ReadLine();

  // Ctrl-C in its console, which is its own.
  void Interrupt();
  // TerminateProcess; returns once it has ended.
  void Kill();
  // Stops and continues all its threads.
  void Suspend();
  void Resume();
  bool HasEnded() const;
  // Waits until it has ended.
  int ExitCode();
  // Its handle.
  int handle() const { return process_.get(); }

  static constexpr int kKilled = 137;

 private:
  UniqueFd job_;
  UniqueFd process_;
  UniqueFd output_;
};

}  // namespace tandem
