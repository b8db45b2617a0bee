#include "tests/faults/victim.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/os/end_with_parent.h"

namespace tandem {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

Victim::Victim(const std::function<void()>& body) {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) Fail("fork");
  if (pid_ == 0) {
    EndWithParent(SIGKILL, parent);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(99);
    raise(SIGSTOP);
    body();
    _exit(0);
  }
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) Fail("victim");
  if (ptrace(PTRACE_SETOPTIONS, pid_, nullptr,
             PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) != 0) {
    Fail("PTRACE_SETOPTIONS");
  }
}

Victim::~Victim() { Kill(); }

void Victim::Mark() { raise(SIGSTOP); }

void Victim::RunOn() { Resume(PTRACE_CONT); }

bool Victim::AwaitMark() {
  while (AwaitStop() != 0) Resume(PTRACE_CONT);
  return !gone_;
}

bool Victim::RunToMark() {
  RunOn();
  return AwaitMark();
}

bool Victim::Advance(Stride stride, int count) {
  bool within = true;
  for (int i = 0; within && i < count; ++i) {
    within = ResumeToStop(stride == kInstruction ? PTRACE_SINGLESTEP
                                                 : PTRACE_SYSCALL) != 0;
  }
  return within;
}

int Victim::ResumeToStop(int request) {
  Resume(request);
  return AwaitStop();
}

void Victim::Resume(int request) {
  if (!gone_ && ptrace(static_cast<__ptrace_request>(request), pid_, nullptr,
                       nullptr) != 0) {
    Fail("ptrace");
  }
}

int Victim::AwaitStop() {
  if (gone_) return 0;
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) Fail("waitpid");
  gone_ = !WIFSTOPPED(status);
  return gone_ || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
}

void Victim::Kill() {
  if (gone_) return;
  kill(pid_, SIGKILL);
  AwaitExit();
}

void Victim::Release() {
  if (!gone_ && ptrace(PTRACE_DETACH, pid_, nullptr, nullptr) != 0) {
    Fail("PTRACE_DETACH");
  }
}

void Victim::Stop() {
  kill(pid_, SIGSTOP);
  siginfo_t info = {};
  // WNOWAIT leaves an exit status in place for AwaitExit.
  if (waitid(P_PID, static_cast<id_t>(pid_), &info,
             WSTOPPED | WEXITED | WNOWAIT) != 0) {
    Fail("waitid");
  }
}

void Victim::Continue() { kill(pid_, SIGCONT); }

int Victim::AwaitExit() {
  int status = 0;
  while (!gone_) {
    if (waitpid(pid_, &status, 0) != pid_) Fail("waitpid");
    gone_ = WIFEXITED(status) || WIFSIGNALED(status);
  }
  return status;
}

}  // namespace tandem
