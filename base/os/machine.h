// The machine below the threads: cores, caches, scheduling.
//
// Data flow: the kernel's answers. Each makes one system call at most, or reads
// files where it says so.
//
//   while (!Ready()) YieldCore();
//   NameThread("tandem-frames");

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/os/unique_fd.h"

namespace tandem {

// Lets another thread run that waits for this core.
void YieldCore();

// Returns the core on which the calling thread runs; -1: unknown. No system
// call with glibc 2.35 and newer.
int CurrentCore();

// Limits the calling thread to one of the cores on which it may run. The
// destructor allows the other ones again, unless another program has moved the
// thread to another core meanwhile: one that limits it to this very core, or
// that changes its cores between two of these system calls, is not noticed.
// Each makes two system calls.
class OnCore {
 public:
  explicit OnCore(int core);  // -1: none
  ~OnCore();
  OnCore(const OnCore&) = delete;
  OnCore& operator=(const OnCore&) = delete;
  int core() const { return core_; }  // -1: it was not moved

 private:
  [[maybe_unused]] alignas(8) std::byte before_[128];  // the cores
  int core_;                                           // -1: none
};

// Whether the scheduler leaves the calling thread on its core while it runs.
bool IsRealTimeThread();

// The number of cores on which the calling thread may run; 0: unknown.
int AllowedCores();

// AllowedCores, at least 1, or fewer if this process's control groups allow
// less processor time; a part of a core counts as one. Reads files.
int UsableCores();

// The size of the cache that all cores share; 0: unknown. A virtual machine may
// report that of the physical machine.
uint64_t SharedCacheBytes();

// Whether the kernel tells time by the processor's counter, which
// tick_clock.h reads. Reads a file.
bool KernelTellsTimeByCounter();

// Fills `bytes`, at most 256, by the kernel's random numbers. Blocks only
// during the system's start.
void FillRandom(std::span<std::byte> bytes);

// Names the calling thread, as users see it in ps and debuggers. At most 15
// characters.
void NameThread(const char* name);

// Gives other threads priority over the calling thread, and over threads that a
// driver starts from it. If the kernel refuses, the thread continues as before.
void GoToBackground();

// The time for which a thread has waited for a core. The constructing thread is
// the measured one. Reads a file.
class CoreWait {
 public:
  CoreWait();

  // Nanoseconds so far; 0 if the kernel does not report them.
  int64_t Nanos() const;

 private:
  UniqueFd file_;
};

}  // namespace tandem
