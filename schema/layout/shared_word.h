// SharedWord: one atomic integer inside a mapped region. SharedDouble: one
// atomic float64.
//
// Data flow: one process stores with `release`, another loads with `acquire`.
// Ownership: the region owns the bytes; either side calls through a pointer.
// The word is a plain integer in memory. It is trivially copyable, so a struct
// can describe a header with words, and a test can compare it with a golden.
// Code can access the integer only by atomic operations with an explicit order.
//
//   SharedWord<uint64_t>& frame_seq = header->frame_seq;
//   // SYNC(lockstep.frame): release; the step's results before the number.
//   frame_seq.store(7, std::memory_order_release);

#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace tandem {

// Every member is wait-free; none allocates or makes a system call. The names
// are those of std::atomic, but the orders have no default.
template <typename T>
class SharedWord {
 public:
  T load(std::memory_order order) const {
    // A load through atomic_ref writes nothing, so a read-only mapping works.
    return std::atomic_ref<T>(const_cast<T&>(value_)).load(order);
  }
  void store(T value, std::memory_order order) {
    std::atomic_ref<T>(value_).store(value, order);
  }
  T fetch_add(T value, std::memory_order order) {
    return std::atomic_ref<T>(value_).fetch_add(value, order);
  }
  T fetch_sub(T value, std::memory_order order) {
    return std::atomic_ref<T>(value_).fetch_sub(value, order);
  }

  // May fail without a reason; a failure loads with the same order, without its
  // release part.
  bool compare_exchange_weak(T& expected, T value, std::memory_order order) {
    return std::atomic_ref<T>(value_).compare_exchange_weak(expected, value,
                                                            order);
  }

  // The address that futex(2) takes.
  T* address() { return &value_; }

 private:
  static_assert(std::is_unsigned_v<T>);
  static_assert(std::atomic_ref<T>::is_always_lock_free);
  static_assert(std::atomic_ref<T>::required_alignment == alignof(T));
  T value_;
};

// Does a relaxed store if the value differs. For a word that rarely changes: a
// store takes the cache line from the other side, a load does not.
template <typename T>
void StoreIfOther(SharedWord<T>* word, std::type_identity_t<T> value) {
  // relaxed: the caller's next release publishes it.
  if (word->load(std::memory_order_relaxed) == value) return;
  // relaxed: as above.
  word->store(value, std::memory_order_relaxed);
}

// A float64, stored as its bits. Otherwise as SharedWord.
class SharedDouble {
 public:
  double load(std::memory_order order) const {
    return std::bit_cast<double>(bits_.load(order));
  }
  void store(double value, std::memory_order order) {
    bits_.store(std::bit_cast<uint64_t>(value), order);
  }

 private:
  SharedWord<uint64_t> bits_;
};

static_assert(sizeof(SharedDouble) == 8);
static_assert(std::is_trivially_copyable_v<SharedDouble>);
static_assert(std::is_standard_layout_v<SharedDouble>);
static_assert(sizeof(SharedWord<uint32_t>) == 4);
static_assert(sizeof(SharedWord<uint64_t>) == 8);
static_assert(alignof(SharedWord<uint64_t>) == 8);
static_assert(std::is_trivially_copyable_v<SharedWord<uint64_t>>);
static_assert(std::is_standard_layout_v<SharedWord<uint64_t>>);

}  // namespace tandem
