// How much memory the machine can still give.
//
//   if (bytes > AvailableMemoryBytes()) return TooMuch();

#ifndef TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_
#define TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>

namespace tandem {

// The kernel's MemAvailable; the largest number where it does not say.
uint64_t AvailableMemoryBytes();

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_
