// RpcSide: one end of a pair of RPC rings: a client's, or an attendant's.
//
// Data flow: RpcClient -> the ring to the engine; the ring to this side ->
// RpcClient.
// Ownership: ClientSide and AttendantSide are one each; the RpcClient of their
// owner uses it.
//
//   absl::StatusOr<std::unique_ptr<RpcClient>> calls =
//       RpcClient::Create(&side, {});

#ifndef TANDEM_TRANSPORT_RPC_SIDE_H_
#define TANDEM_TRANSPORT_RPC_SIDE_H_

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

// A function that the waiting thread calls during a long wait: every 50 ms, and
// after each signal. If it returns true, the wait ends with kInterrupted.
using InterruptHook = bool (*)();

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

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_SIDE_H_
