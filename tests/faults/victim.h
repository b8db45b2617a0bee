// Victim: a child process that is killed or frozen at any chosen instruction or
// system call, by ptrace(2).
//
// Data flow: the test forks a body; the body marks where it gets interesting;
// from there the test advances it one instruction or system call at a time.
// Nothing in the code under test knows of it, so what dies is what ships.
//
//   Victim victim([] {
//     auto client = Attach();
//     Victim::Mark();
//     Step(client);
//   });
//   victim.RunToMark();
//   for (int i = 0; i < 100; ++i) victim.Advance(Victim::kInstruction);
//   victim.Kill();

#ifndef TANDEM_TESTS_FAULTS_VICTIM_H_
#define TANDEM_TESTS_FAULTS_VICTIM_H_

#include <sys/types.h>

#include <functional>

namespace tandem {

// Owns the child and kills it at the latest on destruction. Make it while the
// test has one thread. A child that does not get where it is awaited hangs the
// test: arm a watchdog.
class Victim {
 public:
  enum Stride { kInstruction, kSystemCall };

  // Forks; the child runs `body` and exits. It stands still until RunToMark.
  explicit Victim(const std::function<void()>& body);
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim();

  // In the child: where the test takes hold of it.
  static void Mark();

  // Lets it run up to its next mark, and meanwhile the caller, which must call
  // AwaitMark before anything else.
  void RunOn();
  // Waits until it is there. False: it has exited.
  bool AwaitMark();
  // Both.
  bool RunToMark();
  // One instruction, or up to the next entry to or exit from a system call.
  // False: that brought it to its next mark, or it has exited.
  bool Advance(Stride stride);
  // SIGKILL, and waits until it is gone.
  void Kill();
  // Lets it run on, unwatched, until it exits or is killed.
  void Release();
  // Waits for the exit of a released child: its status as of waitpid(2).
  int AwaitExit();

  pid_t pid() const { return pid_; }

 private:
  void Resume(int request);
  // Awaits the next stop. False: mark or exit.
  bool AwaitStop();

  pid_t pid_ = -1;
  bool gone_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_FAULTS_VICTIM_H_
