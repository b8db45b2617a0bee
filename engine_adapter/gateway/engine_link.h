// EngineLink: the gateway's calls of an engine's RPCs, as an attendant.
//
// Data flow: a request -> the attendant's rings -> the engine -> its answer.
// Ownership: one for a gateway. Any thread may call it.
//
//   EngineLink link("demo");
//   absl::StatusOr<rpc::GetSceneInfoResponseT> info =
//       link.Ask<rpc::GetSceneInfoResponse>(rpc::MethodId::GetSceneInfo,
//                                           rpc::GetSceneInfoRequestT(),
//                                           Deadline::After(5));

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_ENGINE_LINK_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_ENGINE_LINK_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/rpc/packed_call.h"
#include "transport/rpc/rpc_client.h"
#include "transport/session/attendant_side.h"

namespace tandem::gateway {

// It attaches at the first call, and again when the engine was replaced.
class EngineLink {
 public:
  explicit EngineLink(std::string region) : region_(std::move(region)) {}
  EngineLink(const EngineLink&) = delete;
  EngineLink& operator=(const EngineLink&) = delete;

  // Blocks until the answer. Errors: those of RpcClient::Call, and of Client.
  absl::StatusOr<RpcMessage> Call(PackedCall call, Deadline deadline);

  // The same, with plain structs. kEngineFailed: another kind of answer.
  template <typename Response, typename Request>
  absl::StatusOr<typename Response::NativeTableType> Ask(rpc::MethodId method,
                                                         Request request,
                                                         Deadline deadline) {
    rpc::EnvelopeT call;
    call.method = method;
    call.payload.Set(std::move(request));
    TANDEM_ASSIGN_OR_RETURN(const RpcMessage answer, Call(call, deadline));
    return Unpacked<Response>(answer);
  }

  // Returns the calls of the engine that now serves the region; attaches if
  // necessary, which blocks for at most kAttachSecs. kNotReady: there is no
  // engine. Other errors: those of AttendantSide::Attach.
  absl::StatusOr<std::shared_ptr<RpcClient>> Client();

  // Returns an answer's payload. kEngineFailed: it has another type.
  template <typename Response>
  static absl::StatusOr<typename Response::NativeTableType> Unpacked(
      const RpcMessage& answer) {
    const Response* const table = answer.envelope().payload_as<Response>();
    if (table == nullptr) {
      return MakeError(
          ErrorCode::kEngineFailed,
          absl::StrCat("expected the engine's answer to ",
                       rpc::EnumNameMethodId(answer.envelope().method()),
                       ", found another kind of message"));
    }
    typename Response::NativeTableType unpacked;
    table->UnPackTo(&unpacked);
    return unpacked;
  }

 private:
  static constexpr double kAttachSecs = 1;

  struct Session {
    std::unique_ptr<AttendantSide> side;
    std::unique_ptr<RpcClient> client;  // refers to side
  };

  const std::string region_;
  std::mutex mutex_;
  std::shared_ptr<Session> session_;  // guarded by mutex_
};

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_ENGINE_LINK_H_
