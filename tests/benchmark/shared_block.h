// SharedBlock: memory of two processes for a bare hand-over, a number each way
// and a payload.
//
// Data flow: the constructor maps it -> fork -> the client stores actions, then
// `asked`; the engine stores results, then `answered`.
// Ownership: each process unmaps its own.
//
//   SharedBlock block(size);
//   Payload payload(size, block.payload());
//   block.words().asked.store(1, std::memory_order_release);

#ifndef TANDEM_TESTS_BENCHMARK_SHARED_BLOCK_H_
#define TANDEM_TESTS_BENCHMARK_SHARED_BLOCK_H_

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"

namespace tandem {

// The two words that a bare hand-over needs, a pair of cache lines each.
// Writer and reader: client and engine; and the other way round. Both start at
// 0, count exchanges and wrap.
struct Words {
  alignas(128) std::atomic<uint32_t> asked{0};
  alignas(128) std::atomic<uint32_t> answered{0};
};

// The words, then a payload.
class SharedBlock {
 public:
  explicit SharedBlock(const Size& size)
      : bytes_(sizeof(Words) + Payload::Bytes(size)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    RequireCall(memory_ != MAP_FAILED, "mmap");
    new (memory_) Words;
  }
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  ~SharedBlock() { munmap(memory_, bytes_); }

  Words& words() const { return *static_cast<Words*>(memory_); }
  void* payload() const { return static_cast<Words*>(memory_) + 1; }

 private:
  size_t bytes_;
  void* memory_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_SHARED_BLOCK_H_
