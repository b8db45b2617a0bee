// ForeignScene: the live scene of an engine on the other side of the C
// interface.
//
// Data flow: viewers watch -> tandem_services.scene and poses -> LiveScene.
// Ownership: ForeignServices owns it. The stepping thread calls it; any thread
// may call NoteChange.
//
//   ForeignScene scene(services, result_of);

#ifndef TANDEM_SDK_FOREIGN_SCENE_H_
#define TANDEM_SDK_FOREIGN_SCENE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/guarded.h"
#include "engine_adapter/given_scene.h"
#include "engine_adapter/scene_source.h"
#include "sdk/tandem.h"

namespace tandem {

// Its calls throw StatusError for a function that fails.
class ForeignScene final : public SceneSource {
 public:
  ForeignScene(const tandem_services& given,
               std::function<absl::Status(int32_t)> result_of)
      : scene_(given.scene),
        poses_(given.poses),
        user_(given.user),
        result_of_(std::move(result_of)) {}

  // relaxed: here and below: the number publishes no other data.
  void NoteChange() { version_.fetch_add(1, std::memory_order_relaxed); }

  uint64_t Version(uint32_t /*env*/) override {
    return version_.load(std::memory_order_relaxed);  // relaxed: as above
  }
  Make Describe(uint32_t /*env*/) override {
    const uint8_t* glb = nullptr;
    uint64_t bytes = 0;
    ThrowUnlessOk(result_of_(scene_(user_, &glb, &bytes)));
    auto copy = std::make_shared<std::string>(
        reinterpret_cast<const char*>(glb), glb == nullptr ? 0 : bytes);
    return [copy] { return GivenScene(std::move(*copy)); };
  }
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override {
    for (uint32_t i = 0; i < envs.size(); ++i) {
      ThrowUnlessOk(result_of_(
          poses_(user_, envs[i], into->poses(i).data(), into->nodes())));
    }
  }

 private:
  int32_t (*const scene_)(void*, const uint8_t**, uint64_t*);
  int32_t (*const poses_)(void*, uint32_t, float*, uint32_t);
  void* const user_;
  const std::function<absl::Status(int32_t)> result_of_;
  std::atomic<uint64_t> version_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SDK_FOREIGN_SCENE_H_
