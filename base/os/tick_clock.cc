#include "base/os/tick_clock.h"

#include <cstdint>

#include "base/os/machine.h"

namespace tandem {
namespace {

bool KernelTellsTimeByTicks() {
#if defined(__aarch64__)
  uint64_t hertz;  // as the firmware says; BasicTickClock measures it
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
  for (int& scale = MachineTime::scale; scale < 6; ++scale) {
    if (hertz << scale >= 1'000'000'000) break;
  }
#endif
  return KernelTellsTimeByCounter();
}

}  // namespace

bool MachineTime::TicksTellTime() {
  static const bool tells = KernelTellsTimeByTicks();
  return tells;
}

}  // namespace tandem
