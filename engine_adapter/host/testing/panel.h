// Panel: an attendant of a test, and its calls.
//
//   Panel panel(name);
//   EXPECT_TRUE(panel.SetPaused(true).ok());

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/attendant_side.h"
#include "transport/rpc_client.h"

namespace tandem {

class Panel {
 public:
  explicit Panel(const std::string& name, const std::string& label = "panel")
      : side_(AttendantSide::Attach(name, {.label = label}).value()),
        calls_(RpcClient::Create(side_.get(), {}).value()) {}

  template <typename Request>
  absl::StatusOr<RpcMessage> Call(rpc::MethodId method, Request request = {}) {
    return calls_->Call(Packed(method, std::move(request)),
                        Deadline::After(20));
  }
  template <typename Request>
  static rpc::EnvelopeT Packed(rpc::MethodId method, Request request) {
    rpc::EnvelopeT call;
    call.method = method;
    call.payload.Set(std::move(request));
    return call;
  }
  absl::Status SetPaused(bool paused) {
    rpc::SetPausedRequestT request;
    request.paused = paused;
    return Call(rpc::MethodId::SetPaused, request).status();
  }
  absl::Status SetMujoco(bool enabled) {
    rpc::SetServiceRequestT request;
    request.name = "mujoco";
    request.enabled = enabled;
    return Call(rpc::MethodId::SetService, request).status();
  }
  absl::Status GetJoints() {
    return Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState)
        .status();
  }
  RpcClient& calls() { return *calls_; }
  AttendantSide& side() { return *side_; }

 private:
  std::unique_ptr<AttendantSide> side_;
  std::unique_ptr<RpcClient> calls_;
};

}  // namespace tandem
