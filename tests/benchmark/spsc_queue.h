// SpscQueue: the textbook queue of one writer and one reader, which the command
// ring is held against. Its messages all have one size, and its peer is
// trusted.
//
// Data flow: message -> copied into a slot, then `tail` -> copied out, then
// `head`. Each side keeps the other's index and reads it anew only when the
// queue looks full, or empty.
// Ownership: Shared lies in memory of both processes; a queue made before the
// fork has one end used in each of them.
//
//   SpscQueue<Message> queue(shared);
//   if (queue.TryPush(message)) ...     // writer
//   if (queue.TryPop(&message)) ...     // reader
//
//  word  writer  reader  publishes   initially
//  tail  writer  reader  messages    0
//  head  reader  writer  free slots  0
//
// Indices count messages; 2^64 of them are not reached.

#ifndef TANDEM_TESTS_BENCHMARK_SPSC_QUEUE_H_
#define TANDEM_TESTS_BENCHMARK_SPSC_QUEUE_H_

#include <atomic>
#include <cstdint>

namespace tandem {

template <typename Message, uint64_t kSlots>
class SpscQueue {
 public:
  static_assert((kSlots & (kSlots - 1)) == 0, "a power of two");

  struct Shared {
    alignas(128) std::atomic<uint64_t> tail{0};
    alignas(128) std::atomic<uint64_t> head{0};
    alignas(128) Message slots[kSlots];
  };

  explicit SpscQueue(Shared* shared) : shared_(shared) {}

  // False: it is full.
  bool TryPush(const Message& message) {
    if (tail_ - head_ == kSlots) {
      // SYNC(spsc.free): acquire; the reader's copies before we overwrite.
      head_ = shared_->head.load(std::memory_order_acquire);
      if (tail_ - head_ == kSlots) return false;
    }
    shared_->slots[tail_ & (kSlots - 1)] = message;
    // SYNC(spsc.commit): release; the message before the index.
    shared_->tail.store(++tail_, std::memory_order_release);
    return true;
  }

  // False: it is empty.
  bool TryPop(Message* message) {
    if (head_ == tail_) {
      // SYNC(spsc.commit): acquire; the index before the messages.
      tail_ = shared_->tail.load(std::memory_order_acquire);
      if (head_ == tail_) return false;
    }
    *message = shared_->slots[head_ & (kSlots - 1)];
    // SYNC(spsc.free): release; our copy before the slot is given back.
    shared_->head.store(++head_, std::memory_order_release);
    return true;
  }

 private:
  Shared* shared_;
  uint64_t tail_ = 0;  // the writer's own; the reader's: as last seen
  uint64_t head_ = 0;  // the reader's own; the writer's: as last seen
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_SPSC_QUEUE_H_
