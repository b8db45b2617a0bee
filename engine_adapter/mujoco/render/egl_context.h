// EglContext: an OpenGL context without a window or a display, by EGL.
//
// Data flow: libEGL, loaded by the first Create -> a context -> mjr_*
// functions.
// Ownership: one thread makes it, renders with it and destroys it. The context
// is current in that thread during its lifetime.
//
//   absl::StatusOr<std::unique_ptr<EglContext>> gl = EglContext::Create();
//   if (!gl.ok()) return gl.status();
//   mjr_makeContext(model, &context, mjFONTSCALE_150);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_EGL_CONTEXT_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_EGL_CONTEXT_H_

#include <memory>

#include "absl/status/statusor.h"

namespace tandem {

// The library stays loaded after the context's end, since drivers fail when
// they are unloaded.
class EglContext {
 public:
  // Tries the machine's devices in EGL's order (graphics cards first; only the
  // one of that index where MUJOCO_EGL_DEVICE_ID is set), then Mesa without a
  // device, then the default display. kUnsupported if there is no libEGL, or no
  // driver makes an OpenGL context: says which packages bring one.
  static absl::StatusOr<std::unique_ptr<EglContext>> Create();
  ~EglContext();
  EglContext(const EglContext&) = delete;
  EglContext& operator=(const EglContext&) = delete;

 private:
  struct Library;
  EglContext(const Library& egl, void* display, void* context);

  const Library& egl_;
  void* display_;
  void* context_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_EGL_CONTEXT_H_
