#include "gateway/engine_link.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "gateway/grpc_errors.h"
#include "gateway/stopping.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/region.h"

namespace tandem::gateway {
namespace {

// An engine looks every 100 ms whether its client still exists.
constexpr double kLeavingSecs = 0.5;
constexpr std::chrono::milliseconds kLook(10);

}  // namespace

absl::StatusOr<RpcMessage> EngineLink::Call(PackedCall call,
                                            Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<RpcClient> client, Client());
  absl::StatusOr<RpcMessage> answer = client->Call(std::move(call), deadline);
  if (!answer.ok() && IsAway(answer.status())) {
    MutexLock lock(&mutex_);
    // Another thread may have attached to another engine meanwhile.
    if (session_ != nullptr && session_->client.get() == client.get()) {
      session_ = nullptr;
    }
  }
  return answer;
}

absl::StatusOr<std::shared_ptr<RpcClient>> EngineLink::Client() {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Attached());
  return std::shared_ptr<RpcClient>(session, session->client.get());
}

absl::StatusOr<StepNames> EngineLink::Names() {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Attached());
  return StepNamesOf(session->side->plan(), *session->side->mapping());
}

// The engine refuses ResetAgent of attendants beside a client. Otherwise it
// refuses this call for its argument: no environment has this number.
absl::Status EngineLink::CheckNoClient(Deadline deadline) {
  rpc::ResetAgentRequestT request;
  request.env_ids = {std::numeric_limits<uint32_t>::max()};
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::ResetAgent;
  call.payload.Set(std::move(request));
  // The engine notices the end of a client some time after it.
  const Deadline noticed = Deadline::After(kLeavingSecs);
  absl::Status status = Call(call, deadline).status();
  while (CodeOf(status) == ErrorCode::kAlreadyAttached &&
         !noticed.PassedAt(MonotonicNanos())) {
    std::this_thread::sleep_for(kLook);
    status = Call(call, deadline).status();
  }
  if (CodeOf(status) != ErrorCode::kAlreadyAttached) return absl::OkStatus();
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("region '", region_,
                                "': expected a free client slot; the engine "
                                "answered: ",
                                status.message()));
}

absl::StatusOr<std::shared_ptr<EngineLink::Session>> EngineLink::Attached() {
  MutexLock lock(&mutex_);
  if (session_ == nullptr || !session_->side->EngineAlive()) {
    session_ = nullptr;
    // Attach would wait for an engine.
    if (const auto header = PeekRegion(region_); !header.ok()) {
      return header.status();
    }
    TANDEM_ASSIGN_OR_RETURN(
        std::unique_ptr<AttendantSide> side,
        AttendantSide::Attach(region_, {.label = "tandem-gateway",
                                        .timeout_secs = kAttachSecs,
                                        .interrupted = IsStopping}));
    TANDEM_ASSIGN_OR_RETURN(
        std::unique_ptr<RpcClient> client,
        RpcClient::Create(side.get(), {.interrupted = IsStopping}));
    session_ = std::make_shared<Session>(
        Session{.side = std::move(side), .client = std::move(client)});
  }
  return session_;
}

}  // namespace tandem::gateway
