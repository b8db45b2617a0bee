// RacyCopy: the copy of a payload that the other side may be changing.
//
// Data flow: a frame -> RacyCopy -> its slot -> RacyCopy -> a reader's buffer;
// a sequence number, read again afterwards, says whether the copy is complete.
// Such a race is by design, but no C++ has it: under ThreadSanitizer the bytes
// are copied by relaxed atomics, so that it sees none; else by memcpy, or by
// stores that go past the cache.
//
//   RacyCopy(slot_bytes, frame, Cache::kPast);  // a writer
//   RacyCopy(buffer, slot_bytes, Cache::kInto); // a reader

#ifndef TANDEM_TRANSPORT_FRAMES_RACY_COPY_H_
#define TANDEM_TRANSPORT_FRAMES_RACY_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

// kInto: the copy comes to lie in the writing core's cache. kPast: it goes to
// memory by non-temporal stores (x86 only; else as kInto), which is quicker
// where the cache could not keep it until the slot is written again.
enum class Cache { kInto, kPast };

// Copies `from` to the start of `to`, which has room for it and does not
// overlap. Neither blocks nor allocates. Copies may be seen in any order; see
// StoresBefore.
void RacyCopy(std::span<std::byte> to, std::span<const std::byte> from,
              Cache cache);

// A fence for what C++'s own fences leave out: non-temporal stores, RacyCopy's
// or those that a large memcpy makes, keep their order with no other store.
// All stores before it are seen before all stores after it. Nothing on
// processors that do not have such stores.
void StoresBefore();

// Whether a ring of `ring_bytes` with frames of `frame_bytes` is better written
// past the cache. Measured: docs/benchmarks.md, "Frames".
Cache CacheFor(uint64_t frame_bytes, uint64_t ring_bytes);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_RACY_COPY_H_
