// ImageLease: the caller's hold on a requested image in the region.
//
// Data flow: the engine writes an image into one of the caller's slots -> an
// RpcMessage announces it -> ImageLease -> the caller reads it in place.
// Ownership: the caller owns a lease for each image. The engine does not write
// into a slot while its lease exists; if both slots have leases, images go
// through the ring. So a lease's bytes are valid as long as the lease exists,
// up to the end of its session: then the engine may write an image of the next
// caller. IsIntact detects that.
//
//   const ImageLease lease = message.TakeImage();
//   if (lease) Show(lease.bytes());
//
// docs/protocol.md, "Slots for requested images", is the specification.

#ifndef TANDEM_TRANSPORT_IMAGE_LEASE_H_
#define TANDEM_TRANSPORT_IMAGE_LEASE_H_

#include <cstddef>
#include <memory>
#include <span>

namespace tandem {

// Any thread may use it, one at a time. In a forked child it releases nothing.
class ImageLease {
 public:
  struct Hold;  // image_slot.h

  // Empty.
  ImageLease();
  explicit ImageLease(std::unique_ptr<Hold> hold);
  ImageLease(ImageLease&& other) noexcept;
  ImageLease& operator=(ImageLease&& other) noexcept;
  // Releases the image: the engine may write the next one.
  ~ImageLease();

  explicit operator bool() const { return hold_ != nullptr; }

  // The rest is for leases that are not empty.

  // The image. The caller may change it.
  std::span<std::byte> bytes() const;
  // Whether all reads so far were of this image. False: the slot has a new
  // caller, and the engine has begun to write its image.
  bool IsIntact() const;

 private:
  std::unique_ptr<Hold> hold_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_IMAGE_LEASE_H_
