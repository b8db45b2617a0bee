#include "transport/frames/image_slot.h"

#include <atomic>

#include "base/os/fork_guard.h"
#include "schema/layout/flan.h"
#include "schema/layout/shared_word.h"
#include "transport/frames/racy_copy.h"

namespace tandem {

ImagePlace ImagePlace::Of(std::shared_ptr<const RegionMapping> mapping,
                          const LrbcHeader& plan, size_t caller) {
  ImagePlace place;
  if ((plan.feature_bits & kFeatureImageSlots) == 0) return place;
  place.mapping_ = std::move(mapping);
  place.offset_ = ImageSlotOffset(plan, caller, 0);
  place.image_bytes_ = plan.image_slot_bytes;
  return place;
}

void ImageSlotWriter::Begin() {
  if (!place_) return;
  for (size_t i = 0; i < kSlotsOfCaller; ++i) {
    slots_[i].held = 0;
    // relaxed: the RPC ring's commit of the first notice publishes it.
    place_.slot(i)->released.store(0, std::memory_order_relaxed);
  }
}

ImageNotice ImageSlotWriter::Write(std::span<const std::byte> image) {
  if (!place_ || image.empty() || image.size() > place_.image_bytes()) {
    return {};
  }
  for (size_t i = 0; i < kSlotsOfCaller; ++i) {
    ImageSlot* const shared = place_.slot(i);
    Slot& slot = slots_[i];
    // SYNC(image_slot.release): acquire; the caller's last reads before the
    // engine overwrites the bytes.
    const uint64_t released = shared->released.load(std::memory_order_acquire);
    if (slot.held != 0 && slot.held != released) continue;
    ++slot.images;
    // relaxed: the fence orders it.
    shared->seq.store(FlanSeqWriting(slot.images), std::memory_order_relaxed);
    // SYNC(image_slot.overwrite): fence; the odd seq before the bytes: a caller
    // that reads one of them, and then seq, sees that the image has changed.
    std::atomic_thread_fence(std::memory_order_release);
    StoresBefore();  // memcpy stores a large image by non-temporal stores
    RacyCopy(place_.image(i), image, Cache::kInto);
    StoresBefore();
    slot.held = FlanSeqWhole(slot.images);
    // relaxed: the RPC ring's commit publishes the bytes and this number.
    shared->seq.store(slot.held, std::memory_order_relaxed);
    return {.seq = slot.held,
            .bytes = static_cast<uint32_t>(image.size()),
            .slot = static_cast<uint8_t>(i)};
  }
  return {};
}

// Releases the image at its end.
struct ImageLease::Hold {
  ~Hold();

  const ImagePlace place;
  const ImageNotice notice;
  const uint32_t born_in = ForkCount();  // of the owner
};

ImageLease::Hold::~Hold() {
  if (born_in != ForkCount()) return;
  SharedWord<uint64_t>& released = place.slot(notice.slot)->released;
  // relaxed: only the number counts. A lease of an ended session must not undo
  // a release of the slot's next caller.
  uint64_t before = released.load(std::memory_order_relaxed);
  // SYNC(image_slot.release): release; our last reads before the engine
  // overwrites the bytes.
  while (before < notice.seq &&
         !released.compare_exchange_weak(before, notice.seq,
                                         std::memory_order_release)) {
  }
}

ImageLease LeaseOf(const ImagePlace& place, const ImageNotice& notice) {
  if (notice.slot >= kSlotsOfCaller || notice.bytes == 0 ||
      notice.bytes > place.image_bytes()) {
    return {};
  }
  return ImageLease(std::unique_ptr<ImageLease::Hold>(
      new ImageLease::Hold{.place = place, .notice = notice}));
}

ImageLease::ImageLease() = default;
ImageLease::ImageLease(std::unique_ptr<Hold> hold) : hold_(std::move(hold)) {}
ImageLease::ImageLease(ImageLease&& other) noexcept = default;
ImageLease& ImageLease::operator=(ImageLease&& other) noexcept = default;
ImageLease::~ImageLease() = default;

std::span<std::byte> ImageLease::bytes() const {
  return hold_->place.image(hold_->notice.slot).first(hold_->notice.bytes);
}

bool ImageLease::IsIntact() const {
  // SYNC(image_slot.overwrite): fence; the reads of the bytes before that of
  // seq.
  std::atomic_thread_fence(std::memory_order_acquire);
  // relaxed: the fence orders it.
  return hold_->place.slot(hold_->notice.slot)
             ->seq.load(std::memory_order_relaxed) == hold_->notice.seq;
}

}  // namespace tandem
