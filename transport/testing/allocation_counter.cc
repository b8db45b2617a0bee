#include "transport/testing/allocation_counter.h"

#include <malloc.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace tandem {

std::atomic<uint64_t>* allocation_count = nullptr;

namespace {
void Count() {
  // relaxed: only the number matters, and a test reads it after the work.
  if (allocation_count != nullptr) {
    allocation_count->fetch_add(1, std::memory_order_relaxed);
  }
}
}  // namespace

}  // namespace tandem

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  tandem::Count();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  tandem::Count();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  tandem::Count();
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  tandem::Count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}
