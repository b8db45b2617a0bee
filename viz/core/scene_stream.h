// SceneStream: makes an engine publish its live scene, as long as this object
// exists.
//
// Data flow: the wanted environments -> the RPC WatchScene -> what the engine
// publishes; its scene is then at AttachedScene::Open(region).
// Ownership: one SceneWatch; it takes one of the engine's attendant slots. Not
// thread-safe.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

struct PublishedScene {
  uint32_t generation = 0;
  std::vector<uint32_t> envs;  // ascending
};

class SceneStream {
 public:
  // Interpolation makes it smooth; more snapshots take time of the training.
  static constexpr float kHz = 30;

  using Opener = std::function<absl::StatusOr<std::unique_ptr<SceneStream>>(
      const std::string& region)>;

  // Attaches. Blocks, at most EngineControl::kTimeoutSecs. Errors: those of
  // EngineControl::Attach.
  static absl::StatusOr<std::unique_ptr<SceneStream>> Open(
      const std::string& region);
  virtual ~SceneStream() = default;

  virtual bool EngineAlive() const = 0;
  // The engine's environments.
  virtual uint32_t NumEnvs() const = 0;
  // Asks for these environments, each below NumEnvs, from now on; {}: the first
  // ones. Does not wait.
  // Errors: RpcClient::Open's.
  virtual absl::Status Want(const std::vector<uint32_t>& envs) = 0;
  // Returns what the engine publishes, once after each change; nullopt: no
  // change. Does not wait. Errors: the engine's, such as kUnsupported.
  virtual absl::StatusOr<std::optional<PublishedScene>> Next() = 0;
};

}  // namespace tandem
