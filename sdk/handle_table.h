// HandleTable: handles for C, which stay checkable after their object's end.
//
// Data flow: an object -> its slot -> a handle (slot number and generation) ->
// a Use of the object, or none if the handle is old or was never one.
// Ownership: one table for each type of handle, for the process's life; it owns
// the objects. Thread-safe; Enter and the end of a Use are also
// async-signal-safe, unless the Use deletes the object.
//
//   constinit HandleTable<Client, tandem_client> table;
//   tandem_client* handle = table.Add(std::move(client));
//   if (auto use = table.Enter(handle)) use->Step();
//   table.Close(use);  // the last Use deletes the object

#ifndef TANDEM_SDK_HANDLE_TABLE_H_
#define TANDEM_SDK_HANDLE_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace tandem {

template <typename Object, typename Opaque>
class HandleTable {
 private:
  // word: generation << 32 | closing << 31 | alone << 30 | number of uses. The
  // generation is odd while the slot has an object. It wraps after 2^31 objects
  // of a slot; then a handle that old is valid again.
  // | writers        | readers | publishes         | initial |
  // | Add, Use's end | Enter   | the slot's object | 0       |
  struct Slot {
    std::atomic<uint64_t> word{0};
    Object* object = nullptr;  // written while no handle leads to the slot
    HandleTable* table = nullptr;
    Slot* next_free = nullptr;  // guarded by mutex_
  };

 public:
  static constexpr size_t kSlots = 1024;

  // Keeps the object. Empty: the handle is invalid.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)), weight_(other.weight_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (slot_ != nullptr) Leave(slot_, weight_);
    }
    explicit operator bool() const { return slot_ != nullptr; }
    Object* operator->() const { return slot_->object; }
    Object& operator*() const { return *slot_->object; }

   private:
    friend class HandleTable;
    Use(Slot* slot, uint64_t weight) : slot_(slot), weight_(weight) {}
    Slot* slot_ = nullptr;
    uint64_t weight_ = 0;  // what the use has added to the word
  };

  constexpr HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // nullptr: kSlots objects exist.
  Opaque* Add(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
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
    const uint64_t word =
        slot->word.fetch_add(kGeneration, std::memory_order_release);
    const auto index = static_cast<uint64_t>(slot - slots_.data());
    // The generation has 32 bits; a handle is below 2^48, as pointers are.
    return reinterpret_cast<Opaque*>(((word + kGeneration) >> 32 << 16) |
                                     (index + 1) * kStep);
  }

  Use Enter(const Opaque* handle) {
    Slot* const slot = SlotOf(handle);
    if (slot == nullptr) return {};
    // SYNC(handle.add): acquire; the object after the handle.
    const uint64_t word = slot->word.fetch_add(1, std::memory_order_acquire);
    Use use(slot, 1);
    if (word >> 32 != GenerationOf(handle) || (word & kClosing) != 0) return {};
    return use;
  }

  // Enters if no other use of this kind exists. Empty: one does, or the handle
  // is invalid.
  Use EnterAlone(const Opaque* handle) {
    Slot* const slot = SlotOf(handle);
    if (slot == nullptr) return {};
    // Most often there is no use at all.
    uint64_t word = GenerationOf(handle) << 32;
    constexpr uint64_t kWeight = kAlone + 1;
    do {
      if (word >> 32 != GenerationOf(handle) ||
          (word & (kClosing | kAlone)) != 0) {
        return {};
      }
      // SYNC(handle.alone): acquire; what the last such use has written.
      // SYNC(handle.add): acquire; the object after the handle.
    } while (!slot->word.compare_exchange_weak(word, word + kWeight,
                                               std::memory_order_acquire,
                                               std::memory_order_relaxed));
    return Use(slot, kWeight);
  }

  // Makes the handle of this use invalid. False: another thread did.
  bool Close(const Use& use) { return CloseIf(use, kAnyUses); }
  // The same, if no other use exists.
  bool CloseIfAlone(const Use& use) { return CloseIf(use, 1); }

 private:
  // Handles are multiples of 16, as pointers to objects are.
  static constexpr uintptr_t kStep = 16;
  static constexpr uint64_t kGeneration = uint64_t{1} << 32;
  static constexpr uint64_t kClosing = uint64_t{1} << 31;
  static constexpr uint64_t kAlone = uint64_t{1} << 30;
  static constexpr uint64_t kUses = kAlone - 1;
  static constexpr uint64_t kAnyUses = 0;

  static uint64_t GenerationOf(const Opaque* handle) {
    return reinterpret_cast<uintptr_t>(handle) >> 16;
  }
  // nullptr: never a handle.
  Slot* SlotOf(const Opaque* handle) {
    const auto bits = reinterpret_cast<uintptr_t>(handle);
    const uint64_t index = (bits & 0xffff) / kStep - 1;
    const bool possible =
        index < kSlots && bits % kStep == 0 && GenerationOf(handle) % 2 == 1;
    return possible ? &slots_[index] : nullptr;
  }

  static bool CloseIf(const Use& use, uint64_t uses) {
    // relaxed: the exchange below compares it.
    uint64_t word = use.slot_->word.load(std::memory_order_relaxed);
    do {
      if ((word & kClosing) != 0) return false;
      if (uses != kAnyUses && (word & kUses) != uses) return false;
      // SYNC(handle.leave): acq_rel; other uses are over before the deletion.
    } while (!use.slot_->word.compare_exchange_weak(
        word, word | kClosing, std::memory_order_acq_rel,
        std::memory_order_relaxed));
    return true;
  }

  static void Leave(Slot* slot, uint64_t weight) {
    // SYNC(handle.leave): acq_rel; this use before the deletion.
    // SYNC(handle.alone): release; what this use has written.
    const uint64_t word =
        slot->word.fetch_sub(weight, std::memory_order_acq_rel) - weight;
    if ((word & (kClosing | kUses)) == kClosing) slot->table->Delete(slot, word);
  }

  // The last use of a closed handle has ended. A late Enter of the old handle
  // may come and leave meanwhile: then that one deletes.
  [[gnu::noinline]] void Delete(Slot* slot, uint64_t word) {
    const uint64_t next = word - kClosing + kGeneration;
    // SYNC(handle.leave): acq_rel; as in Leave.
    if (!slot->word.compare_exchange_strong(word, next,
                                            std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
      return;
    }
    delete std::exchange(slot->object, nullptr);
    const std::lock_guard lock(mutex_);
    slot->next_free = std::exchange(free_, slot);
  }

  std::array<Slot, kSlots> slots_ = {};
  std::mutex mutex_;
  // Guarded by mutex_.
  Slot* free_ = nullptr;
  size_t used_ = 0;  // slots that were ever used
};

}  // namespace tandem

#endif  // TANDEM_SDK_HANDLE_TABLE_H_
