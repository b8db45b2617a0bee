#include "engine_adapter/mujoco/render/egl_context.h"

#include "base/error.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<EglContext>> EglContext::Create() {
  return MakeError(
      ErrorCode::kUnsupported,
      "frames: expected OpenGL by EGL, found Windows, where Tandem "
      "draws no images; use Linux or WSL 2");
}

EglContext::~EglContext() = default;

}  // namespace tandem
