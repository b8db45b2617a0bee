// AgentFrames: the results of the gateway's own steps, as a stream.
//
// Data flow: the client slot's last exchange -> Next, at most target_fps times
// a second -> RelayStream.
// Ownership: refers to the slot, which outlives it. One thread at a time.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "gateway/client_slot.h"
#include "gateway/stream_items.h"
#include "schema/protos/hazel/agent.pb.h"

namespace tandem::gateway {

// Without a target_fps: 30. Frames of equal frame_number are passed once.
class AgentFrames final : public StreamItems {
 public:
  AgentFrames(ClientSlot* slot, const hazel::rpc::StreamAgentRequest& request);

  // Blocks until a new frame. kStepTimeout: none before the deadline, for
  // example because no program has stepped. Errors: those of ClientSlot::Frame.
  absl::StatusOr<std::unique_ptr<google::protobuf::Message>> Next(
      Deadline deadline) override;

 private:
  ClientSlot* slot_;
  hazel::rpc::StreamAgentRequest request_;
  Deadline next_ = Deadline::Now();
  std::optional<uint32_t> last_;  // the frame_number
};

}  // namespace tandem::gateway
