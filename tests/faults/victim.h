// Victim: a child process that a test kills or freezes at a chosen instruction
// or system call, by ptrace(2).
//
// Data flow: the test forks a body; the body marks the start of the code under
// test. From there the test advances it by one instruction or system call at a
// time. The code under test is the shipped code, without hooks.
//
//   Victim victim([] {
//     auto client = Attach();
//     Victim::Mark();
//     Step(client);
//   });
//   victim.RunToMark();
//   victim.Advance(Victim::kInstruction, 100);
//   victim.Kill();

#pragma once

#include <sys/types.h>

#include <functional>

namespace tandem {

// Owns the child and kills it on destruction at the latest. Make it while the
// test has one thread. If the child never reaches an awaited mark, the test
// hangs: arm a watchdog.
class Victim {
 public:
  enum Stride { kInstruction, kSystemCall };

  // Forks; the child runs `body` and exits. It is stopped until RunToMark.
  explicit Victim(const std::function<void()>& body);
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim();

  // In the child: marks a point at which the test takes control.
  static void Mark();

  // Lets the child run up to its next mark. The caller runs meanwhile, and
  // must call AwaitMark before any other function.
  void RunOn();
  // Waits until the child is at its mark. False: it has exited.
  bool AwaitMark();
  // RunOn, then AwaitMark.
  bool RunToMark();
  // Runs `count` instructions, or up to the `count`-th next entry to or exit
  // from a system call. False: the child is at its next mark or has exited.
  bool Advance(Stride stride, int count = 1);
  // Resumes it by this ptrace(2) request, and waits for its next stop of any
  // kind. Returns the stop's signal; 0: it is at its next mark or has exited.
  int ResumeToStop(int request);
  // Sends SIGKILL, and waits until the child has ended.
  void Kill();
  // Lets the child run freely until it exits or is killed.
  void Release();
  // Stops all threads of a released child by SIGSTOP, and waits until they are
  // stopped. Continue resumes them.
  void Stop();
  void Continue();
  // Waits for the exit of a released child: its status as in waitpid(2).
  int AwaitExit();

  pid_t pid() const { return pid_; }
  // Whether its exit or death has been seen.
  bool gone() const { return gone_; }

 private:
  void Resume(int request);
  // Returns the next stop's signal. 0: a mark or an exit.
  int AwaitStop();

  pid_t pid_ = -1;
  bool gone_ = false;
};

}  // namespace tandem
