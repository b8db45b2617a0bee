#include "engine_adapter/gateway/engine_link.h"

#include "engine_adapter/gateway/grpc_errors.h"
#include "engine_adapter/gateway/info_names.h"
#include "engine_adapter/gateway/stopping.h"
#include "transport/base/error.h"
#include "transport/memory/attached_region.h"

namespace tandem::gateway {

absl::StatusOr<RpcMessage> EngineLink::Call(PackedCall call,
                                            Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<RpcClient> client, Client());
  absl::StatusOr<RpcMessage> answer = client->Call(std::move(call), deadline);
  if (!answer.ok() && IsAway(answer.status())) {
    const std::lock_guard lock(mutex_);
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

absl::StatusOr<std::vector<std::string>> EngineLink::InfoNames() {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Attached());
  return gateway::InfoNames(session->side->plan(), *session->side->mapping());
}

absl::StatusOr<std::shared_ptr<EngineLink::Session>> EngineLink::Attached() {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr || !session_->side->EngineAlive()) {
    session_ = nullptr;
    // Attach would wait for an engine.
    if (const auto header = AttachedRegion::Peek(region_); !header.ok()) {
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
