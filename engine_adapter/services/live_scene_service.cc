#include "engine_adapter/services/live_scene_service.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/services/env_selection.h"

namespace tandem {
namespace {

constexpr uint32_t kWatchedByDefault = 64;

}  // namespace

absl::StatusOr<RpcStream> LiveSceneService::WatchScene(
    const rpc::WatchSceneRequestT& request) {
  if (!std::isfinite(request.hz) || request.hz < 0) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("hz: expected 0 or more, found ", request.hz));
  }
  std::vector<uint32_t> envs(std::min(scene_->num_envs(), kWatchedByDefault));
  std::iota(envs.begin(), envs.end(), 0U);
  if (!request.env_ids.empty()) {
    TANDEM_ASSIGN_OR_RETURN(
        envs, SelectEnvs(request.env_ids, "", scene_->num_envs()));
  }
  using Items = std::vector<rpc::PayloadUnion>;
  const auto next = [scene = scene_,
                     watcher =
                         scene_->Watch(std::move(envs), double{request.hz}),
                     sent = std::make_shared<LiveScene::Publication>()]()
      -> absl::StatusOr<Items> {
    const LiveScene::Publication& now = scene->Published();
    if (!now.status.ok()) return now.status;
    Items items;
    // Nothing yet, or nothing new.
    if (now.envs.empty() || now == *sent) return items;
    rpc::WatchedSceneT item;
    item.segment = now.segment;
    item.generation = now.generation;
    item.env_ids = now.envs;
    items.emplace_back().Set(std::move(item));
    *sent = now;
    return items;
  };
  return RpcStream{.next = next};
}

}  // namespace tandem
