#include "gateway/agent_frames.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "gateway/stopping.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {
namespace {

constexpr uint32_t kDefaultFps = 30;
constexpr uint32_t kMostFps = 1000;

absl::Status NoFrame() {
  return MakeError(ErrorCode::kStepTimeout, "no new frame of the agent");
}

}  // namespace

AgentFrames::AgentFrames(ClientSlot* slot,
                         const hazel::rpc::StreamAgentRequest& request)
    : slot_(slot), request_(request) {
  if (request_.target_fps() == 0) request_.set_target_fps(kDefaultFps);
}

absl::StatusOr<std::unique_ptr<google::protobuf::Message>> AgentFrames::Next(
    Deadline deadline) {
  if (IsStopping()) {
    return MakeError(ErrorCode::kInterrupted, "the gateway is stopping");
  }
  const int64_t until_ns = std::min(next_.at_ns(), deadline.at_ns());
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(until_ns - MonotonicNanos()));
  if (!next_.PassedAt(MonotonicNanos())) return NoFrame();
  next_ = Deadline::After(1.0 / std::min(request_.target_fps(), kMostFps));
  auto frame = std::make_unique<hazel::rpc::AgentFrame>();
  TANDEM_ASSIGN_OR_RETURN(const bool found,
                          slot_->Frame(request_.agent_name(), frame.get()));
  if (!found || last_ == frame->frame_number()) return NoFrame();
  last_ = frame->frame_number();
  frame->set_target_fps(request_.target_fps());
  return frame;
}

}  // namespace tandem::gateway
