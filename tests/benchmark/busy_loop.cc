// Computes without end, for benchmarks beside busy processes; ends with its
// parent.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 0;  // it ended before that line
  // It computes and does not pause, as Relax would: who shares the core is to
  // find it taken. The asm lets the compiler believe that each turn matters.
  for (unsigned turns = 0;; ++turns) asm volatile("" : "+r"(turns));
}
