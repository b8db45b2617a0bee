#include <posix.h>

#include "base/os/windows/native.h"

namespace {

HANDLE watchdog = nullptr;

void CALLBACK OnWatchdog(void*, BOOLEAN) {
  fputs("tandem: a test hangs: the watchdog (alarm) ends it\n", stderr);
  fflush(stderr);
  TerminateProcess(GetCurrentProcess(), 142);
}

DWORD ProtectionOf(int protection) {
  if ((protection & PROT_WRITE) != 0) return PAGE_READWRITE;
  return (protection & PROT_READ) != 0 ? PAGE_READONLY : PAGE_NOACCESS;
}

}  // namespace

unsigned alarm(unsigned seconds) {
  if (watchdog != nullptr) {
    DeleteTimerQueueTimer(nullptr, watchdog, nullptr);
    watchdog = nullptr;
  }
  if (seconds > 0) {
    CreateTimerQueueTimer(&watchdog, nullptr, OnWatchdog, nullptr,
                          seconds * 1000, 0, WT_EXECUTEONLYONCE);
  }
  return 0;
}

int setenv(const char* name, const char* value, int) {
  return _putenv_s(name, value);
}
int unsetenv(const char* name) { return _putenv_s(name, ""); }

void* mmap(void*, size_t bytes, int protection, int, int, off_t) {
  void* const base = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT,
                                  ProtectionOf(protection));
  return base != nullptr ? base : MAP_FAILED;
}
int munmap(void* address, size_t) {
  return VirtualFree(address, 0, MEM_RELEASE) ? 0 : -1;
}
int mprotect(void* address, size_t bytes, int protection) {
  DWORD before = 0;
  return VirtualProtect(address, bytes, ProtectionOf(protection), &before) ? 0
                                                                           : -1;
}

int sched_getaffinity(int, size_t, cpu_set_t* set) {
  GROUP_AFFINITY affinity = {};
  if (!GetThreadGroupAffinity(GetCurrentThread(), &affinity)) return -1;
  set->cores = affinity.Mask;
  return 0;
}
int sched_setaffinity(int, size_t, const cpu_set_t* set) {
  return SetThreadAffinityMask(GetCurrentThread(), set->cores) != 0 ? 0 : -1;
}
int sched_getcpu() { return static_cast<int>(GetCurrentProcessorNumber()); }
