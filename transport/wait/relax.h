// Relax: what a spinning thread does between two looks.
//
// Data flow: none. A hint to the processor that this thread waits: it saves
// power, lets the core's other thread run, and spares the bus.
//
//   while (word.load(std::memory_order_acquire) != wanted) Relax();

#pragma once

namespace tandem {

// Takes some ten to 140 cycles. Orders no memory, makes no system call.
inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace tandem
