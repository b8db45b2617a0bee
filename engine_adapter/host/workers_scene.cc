#include "engine_adapter/host/workers_scene.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/process_handle.h"
#include "engine_adapter/given_scene.h"
#include "schema/layout/scene.h"

namespace tandem {

WorkersScene::WorkersScene(std::span<std::byte> memory, uint32_t num_envs,
                           uint32_t nodes, std::string model_file,
                           std::string program)
    : nodes_(nodes),
      model_file_(std::move(model_file)),
      program_(std::move(program)),
      head_(reinterpret_cast<const WorkersSceneHead*>(memory.data())),
      wanted_(reinterpret_cast<uint64_t*>(memory.data() + sizeof(*head_)),
              num_envs),
      copied_(wanted_.data() + num_envs, num_envs),
      rows_(reinterpret_cast<const std::byte*>(copied_.data() + num_envs)) {}

void WorkersScene::Ask(std::span<const uint32_t> envs) {
  envs_.assign(envs.begin(), envs.end());
  ++number_;
  for (const uint32_t env : envs_) {
    wanted_[env] = 2 * number_ + (env == envs_.front() ? 1 : 0);
  }
}

bool WorkersScene::HasCopied() const {
  return !envs_.empty() && std::ranges::all_of(envs_, [this](uint32_t env) {
    return copied_[env] == wanted_[env];
  });
}

// A model that could not be saved has the version of its error.
uint64_t WorkersScene::Version(uint32_t /*env*/) { return head_->version; }

SceneSource::Make WorkersScene::Describe(uint32_t /*env*/) {
  return [this, head = *head_] { return Convert(head); };
}

void WorkersScene::Capture(std::span<const uint32_t> envs, PoseSnapshot* into) {
  for (uint32_t i = 0; i < envs.size(); ++i) {
    const std::byte* const from = rows_ + SceneRowBytes(nodes_) * envs[i];
    std::memcpy(&into->row(i), from, sizeof(SceneRow));
    const std::span<float> poses = into->poses(i);
    std::memcpy(
        poses.data(), from + sizeof(SceneRow),
        sizeof(float) * std::min<size_t>(poses.size(), kPoseFloats * nodes_));
  }
}

absl::StatusOr<SceneModel> WorkersScene::Convert(const WorkersSceneHead& head) {
  if (head.error[0] != '\0') {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("scene: ", head.error));
  }
  if (converted_ != head.saves) {
    converted_ = 0;
    TANDEM_ASSIGN_OR_RETURN(
        ProcessHandle program,
        ProcessHandle::Start({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1",
                              program_, absl::StrCat("--model=", model_file_),
                              absl::StrCat("--compiled_by=", head.mujoco),
                              absl::StrCat("--save_scene=", model_file_)}));
    // Empty: it has ended, and has written the file, or has crashed.
    const std::string line = program.ReadFirstLine();
    if (!line.empty()) {
      return MakeError(ErrorCode::kUnsupported, absl::StrCat("scene: ", line));
    }
    converted_ = head.saves;
  }
  std::ifstream file(model_file_, std::ios::binary);
  return GivenScene({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace tandem
