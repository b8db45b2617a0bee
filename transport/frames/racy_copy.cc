#include "transport/frames/racy_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/os/machine.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define TANDEM_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TANDEM_UNDER_TSAN 1
#endif
#endif

namespace tandem {
namespace {

#ifdef TANDEM_UNDER_TSAN

template <typename Word>
void CopyWord(std::byte* to, const std::byte* from) {
  // relaxed: a sequence number, read afterwards, shows whether the copy is
  // complete.
  const Word word = std::atomic_ref<Word>(
                        *reinterpret_cast<Word*>(const_cast<std::byte*>(from)))
                        .load(std::memory_order_relaxed);
  // relaxed: as above.
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(to))
      .store(word, std::memory_order_relaxed);
}

void CopyByWords(std::byte* to, const std::byte* from, size_t bytes) {
  const auto misaligned =
      (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) %
      sizeof(uint64_t);
  size_t at = 0;
  if (misaligned == 0) {
    for (; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
      CopyWord<uint64_t>(to + at, from + at);
    }
  }
  for (; at < bytes; ++at) CopyWord<uint8_t>(to + at, from + at);
}

#elif defined(__x86_64__)

void CopyPastCache(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kLine = 64;  // a store of a complete line reads no memory
  size_t at = std::min(
      bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, at);
  for (; at + kLine <= bytes; at += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    static_assert(4 * sizeof(__m128i) == kLine);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

#endif

}  // namespace

void RacyCopy(std::span<std::byte> to, std::span<const std::byte> from,
              [[maybe_unused]] Cache cache) {
  if (from.empty()) return;
#ifdef TANDEM_UNDER_TSAN
  CopyByWords(to.data(), from.data(), from.size());
#else
#if defined(__x86_64__)
  if (cache == Cache::kPast) {
    CopyPastCache(to.data(), from.data(), from.size());
    return;
  }
#endif
  std::memcpy(to.data(), from.data(), from.size());
#endif
}

void StoresBefore() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

Cache CacheFor(uint64_t frame_bytes, uint64_t ring_bytes) {
  constexpr uint64_t kSmallFrame = 128 * 1024;  // stays in a core's own cache
  // A virtual machine may report the shared cache of the physical machine.
  uint64_t kept = 16 << 20;
  if (const uint64_t shared = SharedCacheBytes(); shared > 0) {
    kept = std::min(kept, shared / 2);
  }
  return frame_bytes > kSmallFrame && ring_bytes > kept ? Cache::kPast
                                                        : Cache::kInto;
}

}  // namespace tandem
