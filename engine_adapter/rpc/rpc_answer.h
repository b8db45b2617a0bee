// RpcStream and RpcAnswer: streams and late answers of a service, besides plain
// structs.
//
// Data flow: a service's method -> RpcStream, or RpcAnswer now or later -> the
// dispatcher -> the caller.
// Ownership: the service passes them to the dispatcher. The stepping thread
// makes all calls.

#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// The lowest rate of a stream: about an item in a quarter of an hour. The
// period of a lower rate would not fit into 64 bits.
inline constexpr double kLeastStreamHz = 0.001;

// A stream's rate and the source of its items. Each *moment* has any number of
// items.
struct RpcStream {
  // The moments a second that the client requested, at least kLeastStreamHz; 0:
  // the dispatcher's maximum for the method.
  double hz = 0;
  // Returns the items of the next moment; the dispatcher calls it when the
  // moment is due. No items: nothing is new, and each poll calls it again until
  // there are items. An error ends the stream; the client gets it as the last
  // message.
  std::function<absl::StatusOr<std::vector<rpc::PayloadUnion>>()> next;
  // The dispatcher calls this in place of next when the client's ring is full.
  // Skips a moment at low cost, and returns the number of its items, which are
  // lost. 0: nothing is new since the last pass. A skipped moment stays new for
  // next, so a slow reader gets the newest moment even if no other follows.
  // Empty: waiting loses nothing, and the dispatcher calls next when there is
  // room.
  std::function<size_t()> pass = {};
};

// The answer of a call that takes long. The thread that polls calls it once,
// now or later. It has no effect after the caller has left, or has cancelled
// the call.
template <typename Response>
class RpcAnswer {
 public:
  using Give = std::function<void(absl::StatusOr<Response>)>;

  // The caller waits as long as the object of `wanted` exists.
  RpcAnswer(Give give, std::weak_ptr<const void> wanted)
      : give_(std::move(give)), wanted_(std::move(wanted)) {}
  // For a caller that never cancels.
  template <std::invocable<absl::StatusOr<Response>> Function>
  RpcAnswer(Function give)  // NOLINT: implicit on purpose
      : RpcAnswer(Give(std::move(give)), Always()) {}

  void operator()(absl::StatusOr<Response> response) const {
    give_(std::move(response));
  }
  // After it has expired, work on the answer may end. Any thread may check it.
  const std::weak_ptr<const void>& wanted() const { return wanted_; }

 private:
  static std::shared_ptr<const void> Always() {
    static const auto* const kAlways =
        new std::shared_ptr<const void>(std::make_shared<const bool>(true));
    return *kAlways;
  }

  Give give_;
  std::weak_ptr<const void> wanted_;
};

}  // namespace tandem
