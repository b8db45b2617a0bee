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

#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace tandem {

// The library stays loaded after the context's end, since drivers fail when
// they are unloaded.
class EglContext {
 public:
  // Tries, in this order:
  //  1. the machine's devices in EGL's order, graphics cards first; only device
  //     MUJOCO_EGL_DEVICE_ID if that is set
  //  2. Mesa without a device
  //  3. the default display
  // kUnsupported: no libEGL, or no driver makes an OpenGL context. The text
  // names the packages to install.
  static absl::StatusOr<std::unique_ptr<EglContext>> Create();
  ~EglContext();
  EglContext(const EglContext&) = delete;
  EglContext& operator=(const EglContext&) = delete;

 private:
  struct Library;
  EglContext(const Library& egl, void* display, void* context)
      : egl_(egl), display_(display), context_(context) {}

  const Library& egl_;
  void* display_;
  void* context_;
};

}  // namespace tandem
