// RpcStream and RpcAnswer: what a service gives to its caller, besides plain
// structs.
//
// Data flow: a service's method -> RpcStream, or RpcAnswer now or later -> the
// dispatcher -> the caller.
// Ownership: the dispatcher's, once given; the thread that steps calls all of
// them.
//
//   void Service::Draw(const Request& request, RpcAnswer<Response> answer);
//   return RpcStream{.hz = fps, .next = [this] { return Items(); }};

#ifndef TANDEM_ENGINE_ADAPTER_RPC_RPC_ANSWER_H_
#define TANDEM_ENGINE_ADAPTER_RPC_RPC_ANSWER_H_

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// The slowest that a stream may be: an item in a quarter of an hour. A slower
// one's period would not fit into 64 bits.
inline constexpr double kLeastStreamHz = 0.001;

// What a stream is made of.
struct RpcStream {
  // Moments a second that the client asked for, kLeastStreamHz or more; 0: as
  // many as may be.
  double hz = 0;
  // The items of the next moment, asked for when it is due. None: nothing is
  // new, and each poll asks again until there is. An error ends the stream and
  // is its last word.
  std::function<absl::StatusOr<std::vector<rpc::PayloadUnion>>()> next;
  // In place of next when the client has no room for its items: lets a moment
  // pass, cheaply, and says how many items it had, which are lost. 0: nothing
  // is new since the last pass. What has passed stays new to next: a reader
  // that was late gets the newest moment, though nothing happens any more.
  // Empty: nothing is lost by waiting, and next is asked once there is room.
  std::function<size_t()> pass = {};
};

// The answer of a call that takes its time: called once, by the thread that
// polls, now or later; without effect once the caller has left, or given the
// call up.
template <typename Response>
class RpcAnswer {
 public:
  using Give = std::function<void(absl::StatusOr<Response>)>;

  // The caller waits as long as what `wanted` points to exists.
  RpcAnswer(Give give, std::weak_ptr<const void> wanted)
      : give_(std::move(give)), wanted_(std::move(wanted)) {}
  // Of a caller that never gives up.
  template <std::invocable<absl::StatusOr<Response>> Function>
  RpcAnswer(Function give)  // NOLINT: a function is one
      : RpcAnswer(Give(std::move(give)), Always()) {}

  void operator()(absl::StatusOr<Response> response) const {
    give_(std::move(response));
  }
  // Expired: work on the answer may end. Any thread may check.
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

#endif  // TANDEM_ENGINE_ADAPTER_RPC_RPC_ANSWER_H_
