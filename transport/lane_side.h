// LaneSide: a client's steps of single workers. In a *lane* the environments of
// one worker step without those of the others.
//
// Data flow: actions -> Send -> the workers of these lanes -> Recv returns the
// workers that are ready -> their rows of arrays().
// Ownership: a ClientSide has one; its rules for threads hold.
// docs/protocol.md, "Lanes", is the specification.
//
//   LaneSide& lanes = client.lanes();
//   ErrorCode code = lanes.Send(all_workers, actions);
//   std::vector<uint32_t> ready;
//   while (code == ErrorCode::kOk) {
//     code = lanes.Recv(1, Deadline::After(10), &ready);
//     if (code == ErrorCode::kOk) code = lanes.Send(ready, Act(ready));
//   }
//   return client.Explain(code);

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "schema/layout/error_codes.h"

namespace tandem {

struct ClientCore;  // client_core.h

// Each worker has one lane. An illegal call returns an error and has no effect.
//
//  state of a lane  entered by                        legal calls
//  closed           the client's attach; a Recv that  Send, SendResets, Failure
//                   named the worker
//  open             Send, SendResets with kOk         Recv
//  ready            the worker has the results        Recv
//
// The first lane opens while the client is idle; while one is open or ready,
// the client is in its state "lanes". While a lane is open, the rows of its
// worker belong to the worker.
class LaneSide {
 public:
  LaneSide(const LaneSide&) = delete;
  LaneSide& operator=(const LaneSide&) = delete;

  // Opens lanes: requests a step of all environments of these workers. A reset
  // flag in arrays().resets resets the environment instead; kSkip does neither.
  // `actions` has the rows of these workers, in this order, or is
  // arrays().actions.
  //  - kOk: sent.
  //  - kStepPending: an exchange is pending, or one of these lanes is open.
  //  - kInvalidArgument: no such worker, or a worker is there twice.
  //  - kUnsupported: the engine has no workers.
  //  - kInvalidAction, kPeerGone, kBrokenPeer, kClientClosed, kForkedChild,
  //    kConcurrentUse: as for ClientSide::Send.
  // Makes a system call only to wake workers that sleep: one for all.
  ErrorCode Send(std::span<const uint32_t> workers,
                 std::span<const float> actions);
  // Opens lanes as Send, which only reset `env_ids`, environments of these
  // workers. `seeds`, and errors about both: as for ClientSide::SendReset.
  ErrorCode SendResets(std::span<const uint32_t> workers,
                       std::span<const int64_t> env_ids,
                       std::span<const std::optional<uint64_t>> seeds);

  // The workers whose lanes are open or ready.
  std::vector<uint32_t> Open() const;
  // The number of lanes whose results are there.
  size_t Ready() const;

  // Waits until at least `min_count` lanes (all, if fewer are open) are ready.
  // Closes these lanes, and writes their workers into `workers`. Errors and
  // outcomes as for ClientSide::Recv, and:
  //  - kOk, kEnvFailed: arrays() has the results of `workers`. kEnvFailed: an
  //    environment of one of them raised an exception.
  //  - kStepTimeout, kInterrupted: no lane was closed.
  //  - kNoStepPending: no lane is open.
  // Allocates only to grow `workers`.
  ErrorCode Recv(
      size_t min_count, Deadline deadline, std::vector<uint32_t>* workers,
      absl::FunctionRef<void()> on_long_wait = [] {});

  // kEnvFailed: an environment of one of these workers raised an exception in
  // the worker's last lane, which Recv has closed; Explain has the first.
  // Otherwise kOk. Illegal beside another call.
  ErrorCode Failure(std::span<const uint32_t> workers);

 private:
  friend ClientCore;

  explicit LaneSide(ClientCore* client) : client_(client) {}
  ErrorCode MaySend(std::span<const uint32_t> workers);
  void Post(std::span<const uint32_t> workers);
  void CloseAll();

  ClientCore* const client_;
};

}  // namespace tandem
