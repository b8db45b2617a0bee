// LiveSceneService: the streams that make an engine publish its live scene.
//
// Data flow: WatchScene -> the environments of all open streams -> the scene's
// segment; each stream says which segment, and what is in it.
// Ownership: the host owns it; the stepping thread calls it between exchanges.
//
//   LiveSceneService service;
//   absl::StatusOr<RpcStream> stream = service.WatchScene(request);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_LIVE_SCENE_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_LIVE_SCENE_SERVICE_H_

#include "absl/status/statusor.h"
#include "base/error.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

class LiveSceneService {
 public:
  absl::StatusOr<RpcStream> WatchScene(
      const rpc::WatchSceneRequestT& /*request*/) {
    return MakeError(ErrorCode::kUnsupported, "this engine has no live scene");
  }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_LIVE_SCENE_SERVICE_H_
