// ImageSlotWriter: the engine's end of a caller's slots for requested images.
// LeaseOf: the caller's.
//
// Data flow: an image -> ImageSlotWriter -> a slot; the notice -> the caller's
// RPC ring -> ImageLease -> the caller reads the slot's bytes in place.
// Ownership: the engine owns a writer for each caller; rpc_side.h has the
// rules.
//
// docs/protocol.md, "Slots for requested images", is the specification.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "schema/layout/image_slot.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"
#include "transport/rpc_side.h"

namespace tandem {

// The place of a caller's slots in a region; empty if the region has none.
class ImagePlace {
 public:
  ImagePlace() = default;
  // `plan` has passed CheckHeader or comes from PlanRegion; `caller` as in
  // ImageSlotOffset.
  static ImagePlace Of(std::shared_ptr<const RegionMapping> mapping,
                       const LrbcHeader& plan, size_t caller);

  explicit operator bool() const { return mapping_ != nullptr; }
  // The greatest size of an image, in bytes.
  uint32_t image_bytes() const { return image_bytes_; }
  ImageSlot* slot(size_t slot) const {
    return mapping_->At<ImageSlot>(offset_ +
                                   slot * ImageSlotBytes(image_bytes_));
  }
  std::span<std::byte> image(size_t slot) const {
    return {reinterpret_cast<std::byte*>(this->slot(slot) + 1), image_bytes_};
  }

 private:
  std::shared_ptr<const RegionMapping> mapping_;
  uint64_t offset_ = 0;
  uint32_t image_bytes_ = 0;
};

// An image in a slot: the fields of ImageFrame.
struct ImageNotice {
  uint64_t seq = 0;  // 0: no image
  uint32_t bytes = 0;
  uint8_t slot = 0;
};

// The engine's end. Trusts no word of the slots: a caller that writes into them
// harms only itself. Not thread-safe. No call blocks or allocates.
class ImageSlotWriter {
 public:
  // Without a place, Write writes nothing.
  ImageSlotWriter() = default;
  explicit ImageSlotWriter(ImagePlace place) : place_(std::move(place)) {}

  // A new caller has the slots: it holds no image. Call it before the caller's
  // first Write.
  void Begin();

  // Copies the image into a free slot. No image in the notice: `image` is empty
  // or too large, or the caller holds both slots.
  ImageNotice Write(std::span<const std::byte> image);
  // Frees the slot of a notice of Write that the caller will not get.
  void Withdraw(const ImageNotice& notice) {
    if (notice.seq != 0) slots_[notice.slot].held = 0;
  }

 private:
  struct Slot {
    uint64_t images = 0;  // the number of images written
    uint64_t held = 0;    // the seq of the image that the caller may hold
  };

  ImagePlace place_;
  std::array<Slot, kSlotsOfCaller> slots_;
};

// Takes the image of a notice. Empty if the notice is not valid: the region has
// no slots, or not this one, or `bytes` is 0 or too large.
ImageLease LeaseOf(const ImagePlace& place, const ImageNotice& notice);

}  // namespace tandem
