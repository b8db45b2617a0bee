// A caller's end of the RPCs, a client's or an attendant's: RpcSide, its pair
// of rings, and ImageLease, its hold on a requested image in the region.
//
// Data flow: RpcClient -> the ring to the engine; the ring to this side ->
// RpcClient. The engine writes an image into one of the caller's slots -> an
// RpcMessage announces it -> ImageLease -> the caller reads it in place.
// Ownership: ClientSide and AttendantSide are one RpcSide each; the RpcClient
// of their owner uses it. The caller owns a lease for each image. The engine
// does not write into a slot while its lease exists; if both slots have leases,
// images go through the ring. So a lease's bytes are valid as long as the lease
// exists, up to the end of its session: then the engine may write an image of
// the next caller. IsIntact detects that.
//
//   absl::StatusOr<std::unique_ptr<RpcClient>> calls =
//       RpcClient::Create(&side, {});
//   absl::StatusOr<RpcMessage> message = (*calls)->Call(request, deadline);
//   const ImageLease lease = message->TakeImage();
//   if (lease) Show(lease.bytes());
//
// docs/protocol.md, "Slots for requested images", is the specification.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

class RingReader;
class RingWriter;
struct WaitMachine;
template <typename Machine>
class BasicWaiter;
using Waiter = BasicWaiter<WaitMachine>;
class ImagePlace;
struct ImageNotice;

class RpcSide {
 public:
  virtual ~RpcSide() = default;

  // The region's name.
  virtual const std::string& name() const = 0;
  // The engine's current phase, for error texts: "stepping for 9.98 s". Any
  // thread may call it. Allocates.
  virtual std::string EnginePhase() const = 0;
  // Whether the engine lives. Any thread may call it. Makes a system call.
  virtual bool EngineAlive() const = 0;

 protected:
  RpcSide() = default;
  RpcSide(const RpcSide&) = default;
  RpcSide& operator=(const RpcSide&) = default;

 private:
  friend class RpcEnds;  // rpc_ends.h: what each of these does
  virtual absl::StatusOr<RingReader> RpcRingReader() = 0;
  virtual absl::StatusOr<RingWriter> RpcRingWriter() = 0;
  virtual Waiter RpcWaiter() const = 0;
  virtual void AnnounceRpcs() = 0;
  virtual ImagePlace image_place() const = 0;
};

// Any thread may use it, one at a time. In a forked child it releases nothing.
class ImageLease {
 public:
  // Empty.
  ImageLease();
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
  struct Hold;  // image_slot.cc
  friend ImageLease LeaseOf(const ImagePlace& place, const ImageNotice& notice);
  explicit ImageLease(std::unique_ptr<Hold> hold);

  std::unique_ptr<Hold> hold_;
};

}  // namespace tandem
