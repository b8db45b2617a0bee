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
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tandem {

template <typename Object, typename Opaque>
class HandleTable {
 private:
  // word: generation << 32 | closing << 31 | number of uses. The generation is
  // odd while the slot has an object. It wraps after 2^31 objects of a slot;
  // then a handle that old is valid again.
  // | writers       | readers | publishes         | initial |
  // | Add, Use's end | Enter  | the slot's object | 0       |
  struct Slot {
    std::atomic<uint64_t> word{0};
    Object* object = nullptr;  // written while no handle leads to the slot
  };

 public:
  static constexpr size_t kSlots = 1024;

  // Keeps the object. Empty: the handle is invalid.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), slot_(other.slot_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (table_ != nullptr) table_->Leave(slot_);
    }
    explicit operator bool() const { return table_ != nullptr; }
    Object* operator->() const { return slot_->object; }
    Object& operator*() const { return *slot_->object; }

   private:
    friend class HandleTable;
    Use(HandleTable* table, Slot* slot) : table_(table), slot_(slot) {}
    HandleTable* table_ = nullptr;
    Slot* slot_ = nullptr;
  };

  HandleTable() {
    for (size_t i = kSlots; i > 0; --i) free_.push_back(&slots_[i - 1]);
  }

  // nullptr: kSlots objects exist.
  Opaque* Add(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    Slot* const slot = free_.back();
    free_.pop_back();
    slot->object = object.release();
    // SYNC(handle.add): release; the object before the first use.
    const uint64_t word =
        slot->word.fetch_add(kGeneration, std::memory_order_release);
    return HandleOf(slot, word + kGeneration);
  }

  Use Enter(const Opaque* handle) {
    const auto bits = reinterpret_cast<uintptr_t>(handle);
    const uint64_t index = (bits & 0xffff) / kStep - 1;
    const uint64_t generation = bits >> 16;
    if (index >= kSlots || bits % kStep != 0 || generation % 2 == 0) return {};
    Slot* const slot = &slots_[index];
    // SYNC(handle.add): acquire; the object after the handle.
    const uint64_t word = slot->word.fetch_add(1, std::memory_order_acquire);
    Use use(this, slot);
    if (word >> 32 != generation || (word & kClosing) != 0) return {};
    return use;
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
  static constexpr uint64_t kUses = kClosing - 1;
  static constexpr uint64_t kAnyUses = 0;

  Opaque* HandleOf(const Slot* slot, uint64_t word) {
    const auto index = static_cast<uint64_t>(slot - slots_.data());
    // The generation has 32 bits; a handle is below 2^48, as pointers are.
    return reinterpret_cast<Opaque*>((word >> 32 << 16) | (index + 1) * kStep);
  }

  bool CloseIf(const Use& use, uint64_t uses) {
    // relaxed: the exchange below compares it.
    uint64_t word = use.slot_->word.load(std::memory_order_relaxed);
    do {
      if ((word & kClosing) != 0) return false;
      if (uses != kAnyUses && (word & kUses) != uses) return false;
      // SYNC(handle.leave): acq_rel; other uses are over before the deletion.
    } while (!use.slot_->word.compare_exchange_weak(word, word | kClosing,
                                                    std::memory_order_acq_rel,
                                                    std::memory_order_relaxed));
    return true;
  }

  void Leave(Slot* slot) {
    // SYNC(handle.leave): acq_rel; this use before the deletion.
    const uint64_t word =
        slot->word.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if ((word & (kClosing | kUses)) == kClosing) Delete(slot, word);
  }

  // The last use of a closed handle has ended. A late Enter of the old handle
  // may come and leave meanwhile: then that one deletes.
  void Delete(Slot* slot, uint64_t word) {
    const uint64_t next = word - kClosing + kGeneration;
    // SYNC(handle.leave): acq_rel; as in Leave.
    if (!slot->word.compare_exchange_strong(
            word, next, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return;
    }
    delete std::exchange(slot->object, nullptr);
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

  std::array<Slot, kSlots> slots_;
  std::mutex mutex_;
  std::vector<Slot*> free_;  // guarded by mutex_
};

}  // namespace tandem

#endif  // TANDEM_SDK_HANDLE_TABLE_H_
