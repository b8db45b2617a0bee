// ImageSlotWriter and ImageLease: the two ends of a caller's slots for
// requested images.
//
// Data flow: an image -> ImageSlotWriter -> a slot; the notice -> the caller's
// RPC ring -> ImageLease -> the caller reads the slot's bytes in place.
// Ownership: the engine owns a writer for each caller; the caller owns a lease
// for each notice. The engine does not write into a slot while its lease
// exists; if both slots have leases, images go through the ring. So a lease's
// bytes are valid as long as the lease exists, up to the end of its session:
// then the engine may write an image of the next caller. IsIntact detects that.
//
//   const ImageNotice notice = writer.Write(image);  // seq 0: use the ring
//   const ImageLease lease(place, notice);
//   Show(lease.bytes());
//
// docs/protocol.md, "Slots for requested images", is the specification.

#ifndef TANDEM_TRANSPORT_FRAMES_IMAGE_SLOT_H_
#define TANDEM_TRANSPORT_FRAMES_IMAGE_SLOT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "schema/layout/image_slot.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/fork_guard.h"
#include "transport/memory/region_mapping.h"

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

// The caller's hold on an image. Any thread may use it, one at a time. In a
// forked child it releases nothing.
class ImageLease {
 public:
  ImageLease() = default;
  // Takes the image of a notice. Empty if the notice is not valid: the region
  // has no slots, or not this one, or `bytes` is 0 or too large.
  ImageLease(const ImagePlace& place, const ImageNotice& notice);
  ImageLease(ImageLease&& other) noexcept { *this = std::move(other); }
  ImageLease& operator=(ImageLease&& other) noexcept;
  // Releases the image: the engine may write the next one.
  ~ImageLease();

  explicit operator bool() const { return bool{place_}; }

  // The rest is for leases that are not empty.

  // The image. The caller may change it.
  std::span<std::byte> bytes() const {
    return place_.image(notice_.slot).first(notice_.bytes);
  }
  // Whether all reads so far were of this image. False: the slot has a new
  // caller, and the engine has begun to write its image.
  bool IsIntact() const;

 private:
  ImagePlace place_;
  ImageNotice notice_;
  uint32_t born_in_ = 0;  // ForkCount() of the owner
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_IMAGE_SLOT_H_
