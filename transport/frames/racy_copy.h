// RacyCopy: copies a payload that the other side may change during the copy.
//
// Data flow: a frame -> RacyCopy -> its slot -> RacyCopy -> a reader's buffer;
// a sequence number, read again afterwards, shows whether the copy is complete.
// The race is intended, but C++ does not define it. Under ThreadSanitizer,
// relaxed atomics copy the bytes, so that it reports no race. Otherwise memcpy
// copies them, or stores that bypass the cache.
//
//   RacyCopy(slot_bytes, frame, Cache::kPast);  // a writer
//   RacyCopy(buffer, slot_bytes, Cache::kInto); // a reader

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

// kInto: the copy is in the writing core's cache. kPast: non-temporal stores
// write it to memory (x86 only; elsewhere as kInto). kPast is faster if the
// cache cannot hold the slot until it is written again.
enum class Cache { kInto, kPast };

// Copies `from` to the start of `to`; they do not overlap, and `to` is at least
// as large. Neither blocks nor allocates. Other threads may see the bytes in
// any order; see StoresBefore.
void RacyCopy(std::span<std::byte> to, std::span<const std::byte> from,
              Cache cache);

// A fence for non-temporal stores, of RacyCopy or of a large memcpy, which
// C++'s own fences do not order. All stores before it become visible before all
// stores after it. No operation on processors without such stores.
void StoresBefore();

// Returns the faster way to write frames of `frame_bytes` into a ring of
// `ring_bytes`. Measured: docs/benchmarks.md, "Frames".
Cache CacheFor(uint64_t frame_bytes, uint64_t ring_bytes);

}  // namespace tandem
