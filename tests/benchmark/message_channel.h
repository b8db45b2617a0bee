// What the ways of sending messages have in common that the benchmark of
// messages compares. Each way is a class, a Channel, with the same functions.
//
// Data flow: Channel made -> fork -> Send in one process, Receive in the other.
// Ownership: the caller's; shared memory is gone with the last process.
//
//   RingChannel<Message<64>> channel({.wait = WaitStrategy::kAdaptive});
//   if (fork() == 0) for (;;) channel.Send(message);
//   channel.Receive(&message);
//
// Both wait as long as it takes. A failure ends the process with a line on
// stderr: there is nothing else that a benchmark could do about it.

#ifndef TANDEM_TESTS_BENCHMARK_MESSAGE_CHANNEL_H_
#define TANDEM_TESTS_BENCHMARK_MESSAGE_CHANNEL_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/shared_word.h"
#include "tests/benchmark/or_exit.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

template <size_t kBytes>
struct Message {
  uint64_t number;
  int64_t sent_ns;
  std::byte rest[kBytes - 16];
};
static_assert(sizeof(Message<64>) == 64);

// Every channel holds as many bytes of messages as a command ring does.
template <typename Message>
inline constexpr uint64_t kMessagesThatWait = kDefaultRingBytes /
                                              sizeof(Message);

struct ChannelOptions {
  WaitStrategy wait;  // of both sides, where that can be chosen
  std::string name;   // for what needs one while it is made
};

class NoWatch final : public WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

// A T in memory that a forked child shares.
template <typename T>
class Shared {
 public:
  Shared()
      : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    RequireCall(memory_ != MAP_FAILED, "mmap");
    new (memory_) T;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(memory_, sizeof(T)); }
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

// The bells of both sides, as far apart as in a region's header.
struct Bells {
  alignas(128) SharedWord<uint32_t> writer_bell;
  alignas(128) SharedWord<uint32_t> writer_sleepers;
  alignas(128) SharedWord<uint32_t> reader_bell;
  alignas(128) SharedWord<uint32_t> reader_sleepers;

  Doorbell OfWriter() { return Doorbell(&writer_bell, &writer_sleepers); }
  Doorbell OfReader() { return Doorbell(&reader_bell, &reader_sleepers); }
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_MESSAGE_CHANNEL_H_
