// LiveSceneService: the streams that make an engine publish its live scene.
//
// Data flow: WatchScene -> LiveScene -> the scene's segment; the stream's items
// say which segment, and which environments are in it.
// Ownership: the host owns it; the stepping thread calls it between exchanges.

#pragma once

#include "absl/status/statusor.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/scene/live_scene.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

class LiveSceneService {
 public:
  // `scene` must outlive this object, and its streams.
  explicit LiveSceneService(LiveScene* scene) : scene_(scene) {}

  // Streams rpc::WatchedSceneT: when the segment exists, and after each change
  // of its generation or environments. The engine publishes as long as the
  // stream exists. kInvalidArgument for an unknown environment, one twice, or
  // an invalid rate. The stream ends with an error if the segment cannot be
  // made.
  absl::StatusOr<RpcStream> WatchScene(const rpc::WatchSceneRequestT& request);

 private:
  LiveScene* scene_;
};

}  // namespace tandem
