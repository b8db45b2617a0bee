// Computes without end, for benchmarks beside busy processes; ends with its
// parent.
#include <signal.h>
#include <unistd.h>

#include "program/end_with_parent.h"

int main() {
  tandem::EndWithParent(SIGKILL, getppid());
  // It computes and does not pause, as Relax would: who shares the core is to
  // find it taken. The asm lets the compiler believe that each turn matters.
  for (unsigned turns = 0;; ++turns) asm volatile("" : "+r"(turns));
}
