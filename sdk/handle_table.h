// HandleTable: handles for C, which stay checkable after their object's end.
//
// Data flow: an object -> its slot -> a handle (slot number and generation) ->
// a Use of the object, or none if the handle is old or was never one.
// Ownership: one table for each type of handle, for the process's life; it owns
// the objects. Thread-safe; Enter and the end of a Use are also
// async-signal-safe, unless the Use deletes the object.
//
//   HandleTable<Client, tandem_client> table;
//   tandem_client* handle = table.Add(std::move(client));
//   if (auto use = table.Enter(handle)) use->Step();
//   table.Close(use);  // the last Use deletes the object

#ifndef TANDEM_SDK_HANDLE_TABLE_H_
#define TANDEM_SDK_HANDLE_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace tandem {

template <typename Object, typename Opaque, int64_t kFirstGeneration = 1>
class HandleTable {
 private:
  static constexpr int64_t kGeneration = int64_t{1} << 32;
  static constexpr int64_t kClosed = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kAlone = int64_t{1} << 30;
  static constexpr int64_t kUses = kAlone - 1;

  // word: closed << 63 | generation << 32 | alone << 30 | number of uses. While
  // it is not closed, handles of this generation lead to the object. The
  // generation wraps after 2^31 objects of a slot; then a handle that old is
  // valid again.
  // | writers        | readers | publishes         | initial |
  // | Add, Use's end | Enter   | the slot's object | closed  |
  struct Slot {
    std::atomic<int64_t> word{kClosed + kFirstGeneration * kGeneration};
    Object* object = nullptr;  // written while no handle leads to the slot
    HandleTable* table = nullptr;
    Slot* next_free = nullptr;  // guarded by the table's mutex_
  };

 public:
  static constexpr size_t kSlots = 1024;

  // Keeps the object. Empty: the handle is invalid, or for an AloneUse another
  // such use exists. `kWeight` is what the use adds to the word.
  template <int64_t kWeight>
  class BasicUse {
   public:
    BasicUse() = default;
    BasicUse(BasicUse&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)) {}
    BasicUse& operator=(BasicUse&&) = delete;
    ~BasicUse() {
      if (slot_ != nullptr) Leave(slot_, kWeight);
    }
    explicit operator bool() const { return slot_ != nullptr; }
    Object* operator->() const { return slot_->object; }
    Object& operator*() const { return *slot_->object; }

   private:
    friend class HandleTable;
    static constexpr int64_t kAdded = kWeight;
    explicit BasicUse(Slot* slot) : slot_(slot) {}
    Slot* slot_ = nullptr;
  };
  using Use = BasicUse<1>;
  using AloneUse = BasicUse<kAlone + 1>;

  constexpr HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // nullptr: kSlots objects exist.
  Opaque* Add(std::unique_ptr<Object> object) {
    MutexLock lock(&mutex_);
    Slot* slot = free_;
    if (slot != nullptr) {
      free_ = slot->next_free;
    } else if (used_ < kSlots) {
      slot = &slots_[used_++];
      slot->table = this;
    } else {
      return nullptr;
    }
    slot->object = object.release();
    // SYNC(handle.add): release; the object before the first use.
    const int64_t word =
        slot->word.fetch_and(~kClosed, std::memory_order_release);
    // Below 2^41, as pointers are: the generation has 31 bits.
    const uint64_t generation = static_cast<uint64_t>(word & ~kClosed) >> 32;
    const auto index = static_cast<uint64_t>(slot - slots_.data());
    return reinterpret_cast<Opaque*>(generation * kSlots | index);
  }

  Use Enter(const Opaque* handle) {
    Slot* const slot = SlotOf(handle);
    // relaxed: the exchange below compares it.
    int64_t word = slot->word.load(std::memory_order_relaxed);
    do {
      if ((word & ~(kAlone | kUses)) != IdleWord(handle)) return Use();
      // SYNC(handle.add): acquire; the object after the handle.
    } while (!slot->word.compare_exchange_weak(
        word, word + 1, std::memory_order_acquire, std::memory_order_relaxed));
    return Use(slot);
  }

  // Enters if no other AloneUse exists.
  AloneUse EnterAlone(const Opaque* handle) {
    Slot* const slot = SlotOf(handle);
    // Most often there is no use at all.
    int64_t word = IdleWord(handle);
    // SYNC(handle.alone): acquire; what the last such use has written.
    // SYNC(handle.add): acquire; the object after the handle.
    while (!slot->word.compare_exchange_strong(word, word + kAlone + 1,
                                               std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
      if ((word & ~kUses) != IdleWord(handle)) return AloneUse();
    }
    return AloneUse(slot);
  }

  // As EnterAlone and the end of its use, for the one path where each
  // instruction counts. nullptr: as empty.
  Slot* TakeAlone(const Opaque* handle) {
    AloneUse use = EnterAlone(handle);
    return std::exchange(use.slot_, nullptr);
  }
  static Object* ObjectOf(Slot* taken) { return taken->object; }
  static void GiveAlone(Slot* taken) { Leave(taken, AloneUse::kAdded); }

  // Calls `visit` with each object. For a forked child, which has one thread.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (Slot& slot : slots_) {
      if (slot.object != nullptr) visit(*slot.object);
    }
  }

  // Makes the handle of this use invalid. False: another thread did.
  static bool Close(const Use& use) {
    // SYNC(handle.leave): acq_rel; other uses are over before the deletion.
    return (use.slot_->word.fetch_or(kClosed, std::memory_order_acq_rel) &
            kClosed) == 0;
  }
  // Makes the handle invalid, then waits for the other uses.
  static void CloseAndWait(const Use& use) {
    Close(use);
    // SYNC(handle.leave): acquire; the other uses are over.
    while ((use.slot_->word.load(std::memory_order_acquire) & kUses) != 1) {
      std::this_thread::yield();
    }
  }
  // As Close, if no other use exists.
  static bool CloseIfAlone(const Use& use) {
    // relaxed: the exchange below compares it.
    int64_t word = use.slot_->word.load(std::memory_order_relaxed);
    do {
      if ((word & kClosed) != 0 || (word & kUses) != 1) return false;
      // SYNC(handle.leave): acq_rel; as in Close.
    } while (!use.slot_->word.compare_exchange_weak(word, word | kClosed,
                                                    std::memory_order_acq_rel,
                                                    std::memory_order_relaxed));
    return true;
  }

 private:
  static uintptr_t BitsOf(const Opaque* handle) {
    return reinterpret_cast<uintptr_t>(handle);
  }
  // Every pointer leads to some slot; the generation tells whether it is one of
  // its handles.
  Slot* SlotOf(const Opaque* handle) {
    return &slots_[BitsOf(handle) % kSlots];
  }
  // The word of a slot that this handle leads to, without uses; 0, the word of
  // no slot, for a pointer that is no handle.
  static int64_t IdleWord(const Opaque* handle) {
    const uintptr_t generation = BitsOf(handle) / kSlots;
    return generation >> 31 == 0 ? static_cast<int64_t>(generation << 32) : 0;
  }

  static void Leave(Slot* slot, int64_t weight) {
    // SYNC(handle.leave): acq_rel; this use before the deletion.
    // SYNC(handle.alone): release; what this use has written.
    const int64_t word =
        slot->word.fetch_sub(weight, std::memory_order_acq_rel) - weight;
    if (word < 0) Delete(slot, word);
  }

  // A use of a closed slot has ended; no use begins any more. The last one
  // deletes the object.
  [[gnu::noinline]] static void Delete(Slot* slot, int64_t word) {
    if ((word & kUses) != 0) return;
    delete std::exchange(slot->object, nullptr);
    // The next object's handles have another generation, never 0: a handle is
    // not NULL.
    const int64_t generation = (word + kGeneration) & ~kClosed;
    // relaxed: the mutex orders it before the next Add.
    slot->word.store(kClosed | (generation == 0 ? kGeneration : generation),
                     std::memory_order_relaxed);
    MutexLock lock(&slot->table->mutex_);
    slot->next_free = std::exchange(slot->table->free_, slot);
  }

  std::array<Slot, kSlots> slots_ = {};
  Mutex mutex_;
  Slot* free_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;  // slots that were ever used
};

}  // namespace tandem

#endif  // TANDEM_SDK_HANDLE_TABLE_H_
