// RpcEnds: the rings of an RpcSide, for its RpcClient.
//
// Data flow: RpcClient -> the ring to the engine; the ring to this side ->
// RpcClient.
// Ownership: the side's; it must outlive what these functions return.

#pragma once

#include "absl/status/statusor.h"
#include "transport/frames/image_slot.h"
#include "transport/ring/ring.h"
#include "transport/rpc_side.h"
#include "transport/wait/waiter.h"

namespace tandem {

class RpcEnds {
 public:
  // The side's ends of the two RPC rings: it reads one ring and writes the
  // other. A caller makes each end once a session; both are invalid after it.
  // One thread may use them while another thread uses the rest of the side.
  // kBrokenPeer: the ring's positions are invalid.
  static absl::StatusOr<RingReader> Reader(RpcSide* side) {
    return side->RpcRingReader();
  }
  static absl::StatusOr<RingWriter> Writer(RpcSide* side) {
    return side->RpcRingWriter();
  }
  // A waiter for these two ends. The thread that uses them makes its own.
  static Waiter WaiterOf(const RpcSide& side) { return side.RpcWaiter(); }
  // The caller calls this after it has written into the ring.
  static void Announce(RpcSide* side) { side->AnnounceRpcs(); }
  // The side's slots for requested images; empty if the region has none.
  static ImagePlace Images(const RpcSide& side) { return side.image_place(); }
};

}  // namespace tandem
