#include "viz/core/scene_stream.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "viz/core/engine_control.h"

namespace tandem {
namespace {

class EngineSceneStream final : public SceneStream {
 public:
  explicit EngineSceneStream(EngineControl control)
      : control_(std::move(control)) {}

  bool EngineAlive() const override { return control_.EngineAlive(); }
  uint32_t NumEnvs() const override { return control_.num_envs(); }

  absl::Status Want(const std::vector<uint32_t>& envs) override {
    rpc::WatchSceneRequestT request;
    request.env_ids = envs;
    request.hz = kHz;
    rpc::EnvelopeT call;
    call.method = rpc::MethodId::WatchScene;
    call.payload.Set(std::move(request));
    TANDEM_ASSIGN_OR_RETURN(const uint64_t opened,
                            control_.calls().Open(std::move(call)));
    // After the new one, so that the engine goes on publishing.
    if (id_.has_value()) control_.calls().Close(*id_);
    id_ = opened;
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<PublishedScene>> Next() override {
    std::optional<PublishedScene> newest;
    while (id_.has_value()) {
      absl::StatusOr<std::optional<RpcMessage>> item =
          control_.calls().Next(*id_, Deadline::Now());
      if (CodeOf(item.status()) == ErrorCode::kStepTimeout) break;
      if (!item.ok()) return item.status();
      const rpc::WatchedScene* const scene =
          item->has_value() ? (*item)->envelope().payload_as_WatchedScene()
                            : nullptr;
      if (scene == nullptr) {
        return MakeError(ErrorCode::kBrokenPeer,
                         "WatchScene: expected an item, found another message "
                         "or the stream's end");
      }
      newest.emplace();
      newest->generation = scene->generation();
      if (scene->env_ids() != nullptr) {
        newest->envs.assign(scene->env_ids()->begin(), scene->env_ids()->end());
      }
    }
    return newest;
  }

 private:
  EngineControl control_;
  std::optional<uint64_t> id_;  // of the stream
};

}  // namespace

absl::StatusOr<std::unique_ptr<SceneStream>> SceneStream::Open(
    const std::string& region) {
  TANDEM_ASSIGN_OR_RETURN(EngineControl control,
                          EngineControl::Attach(region, "tandem-view"));
  return std::make_unique<EngineSceneStream>(std::move(control));
}

}  // namespace tandem
