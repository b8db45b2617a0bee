// EngineLink: the gateway's calls of an engine's RPCs, as an attendant.
//
// Data flow: a request -> the attendant's rings -> the engine -> its answer.
// Ownership: one for a gateway. Any thread may call it.

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "gateway/info_names.h"
#include "transport/attendant_side.h"
#include "transport/envelope.h"
#include "transport/rpc_client.h"

namespace tandem::gateway {

// It attaches at the first call, and again when the engine was replaced.
class EngineLink {
 public:
  explicit EngineLink(std::string region) : region_(std::move(region)) {}
  EngineLink(const EngineLink&) = delete;
  EngineLink& operator=(const EngineLink&) = delete;

  // Blocks until the answer. Errors: those of RpcClient::Call, and of Client.
  absl::StatusOr<RpcMessage> Call(PackedCall call, Deadline deadline);

  // Returns the calls of the engine that now serves the region; attaches if
  // necessary, which blocks for at most kAttachSecs. kNotReady: there is no
  // engine. Other errors: those of AttendantSide::Attach.
  absl::StatusOr<std::shared_ptr<RpcClient>> Client();

  // Returns the names of the engine's steps. Errors: as Client.
  absl::StatusOr<StepNames> Names();

  // kAlreadyAttached: the engine has a client, also one without a lock, which
  // an attach would not notice. OK for any other error of the call. Blocks.
  absl::Status CheckNoClient(Deadline deadline);

 private:
  static constexpr double kAttachSecs = 1;

  struct Session {
    std::unique_ptr<AttendantSide> side;
    std::unique_ptr<RpcClient> client;  // refers to side
  };

  absl::StatusOr<std::shared_ptr<Session>> Attached();

  const std::string region_;
  Mutex mutex_;
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::gateway
