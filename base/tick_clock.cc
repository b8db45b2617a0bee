#include "base/tick_clock.h"

#include <cstdint>
#include <string_view>

#include "base/os/machine.h"

namespace tandem {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kCounter = "tsc";
#elif defined(__aarch64__)
constexpr std::string_view kCounter = "arch_sys_counter";
#else
constexpr std::string_view kCounter = "none";
#endif

bool KernelTellsTimeByTicks() {
#if defined(__aarch64__)
  uint64_t hertz;  // as the firmware says; BasicTickClock measures it
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
  for (int& scale = MachineTime::scale; scale < 6; ++scale) {
    if (hertz << scale >= 1'000'000'000) break;
  }
#endif
  return KernelClockSource() == kCounter;
}

}  // namespace

bool MachineTime::TicksTellTime() {
  static const bool tells = KernelTellsTimeByTicks();
  return tells;
}

}  // namespace tandem
