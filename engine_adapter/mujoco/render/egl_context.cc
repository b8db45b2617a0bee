#include "engine_adapter/mujoco/render/egl_context.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"

namespace tandem {
namespace {

// Types of EGL 1.5 and its extensions. The build needs no EGL headers.
using Display = void*;
using Config = void*;
using Context = void*;
using Device = void*;
constexpr int32_t kNone = 0x3038;
constexpr int32_t kSurfaceType = 0x3033;
constexpr int32_t kPbufferBit = 0x0001;
constexpr int32_t kRenderableType = 0x3040;
constexpr int32_t kOpenGlBit = 0x0008;
constexpr int32_t kRedSize = 0x3024;
constexpr int32_t kGreenSize = 0x3023;
constexpr int32_t kBlueSize = 0x3022;
constexpr uint32_t kOpenGlApi = 0x30A2;
constexpr uint32_t kPlatformDevice = 0x313F;
constexpr uint32_t kPlatformSurfaceless = 0x31DD;

constexpr char kPackages[] =
    "install the packages libegl1 and libgl1-mesa-dri (Debian, Ubuntu), or the "
    "graphics card's own driver with EGL";

absl::Status Lacking(absl::string_view found) {
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("frames: expected OpenGL by EGL, found ", found,
                                "; ", kPackages));
}

}  // namespace

struct EglContext::Library {
  void* (*GetProcAddress)(const char*);
  Display (*GetDisplay)(void*);
  uint32_t (*Initialize)(Display, int32_t*, int32_t*);
  uint32_t (*Terminate)(Display);
  uint32_t (*BindAPI)(uint32_t);
  uint32_t (*ChooseConfig)(Display, const int32_t*, Config*, int32_t, int32_t*);
  Context (*CreateContext)(Display, Config, Context, const int32_t*);
  uint32_t (*DestroyContext)(Display, Context);
  uint32_t (*MakeCurrent)(Display, void*, void*, Context);
  uint32_t (*ReleaseThread)();
  int32_t (*GetError)();
  // Extensions; nullptr where missing.
  Display (*GetPlatformDisplay)(uint32_t, void*, const int32_t*);
  uint32_t (*QueryDevices)(int32_t, Device*, int32_t*);

  template <typename Function>
  static bool Find(void* library, const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library, name));
    return *function != nullptr;
  }

  // Returns the library, loaded once for the process.
  static const absl::StatusOr<Library>& Load() {
    // Never destroyed: a thread may render while the process exits.
    static const auto& library = *new absl::StatusOr<Library>(Open());
    return library;
  }

  static absl::StatusOr<Library> Open() {
    // RTLD_GLOBAL: libmujoco looks up eglGetProcAddress among the process's
    // symbols.
    void* const library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is thread-local
      return Lacking(absl::StrCat("no libEGL (", dlerror(), ")"));
    }
    Library egl;
    if (!Find(library, "eglGetProcAddress", &egl.GetProcAddress) ||
        !Find(library, "eglGetDisplay", &egl.GetDisplay) ||
        !Find(library, "eglInitialize", &egl.Initialize) ||
        !Find(library, "eglTerminate", &egl.Terminate) ||
        !Find(library, "eglBindAPI", &egl.BindAPI) ||
        !Find(library, "eglChooseConfig", &egl.ChooseConfig) ||
        !Find(library, "eglCreateContext", &egl.CreateContext) ||
        !Find(library, "eglDestroyContext", &egl.DestroyContext) ||
        !Find(library, "eglMakeCurrent", &egl.MakeCurrent) ||
        !Find(library, "eglReleaseThread", &egl.ReleaseThread) ||
        !Find(library, "eglGetError", &egl.GetError)) {
      return Lacking("a libEGL that lacks a function of EGL 1.4");
    }
    egl.GetPlatformDisplay = reinterpret_cast<decltype(egl.GetPlatformDisplay)>(
        egl.GetProcAddress("eglGetPlatformDisplayEXT"));
    egl.QueryDevices = reinterpret_cast<decltype(egl.QueryDevices)>(
        egl.GetProcAddress("eglQueryDevicesEXT"));
    return egl;
  }

  std::vector<Display> Displays() const {
    std::vector<Display> displays;
    if (GetPlatformDisplay != nullptr) {
      std::array<Device, 32> devices;
      int32_t count = 0;
      if (QueryDevices == nullptr ||
          QueryDevices(devices.size(), devices.data(), &count) == 0) {
        count = 0;
      }
      int32_t only = -1;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
      const char* const asked = std::getenv("MUJOCO_EGL_DEVICE_ID");
      const bool one = asked != nullptr && absl::SimpleAtoi(asked, &only);
      for (int32_t i = 0; i < count; ++i) {
        if (one && i != only) continue;
        displays.push_back(GetPlatformDisplay(
            kPlatformDevice, devices[static_cast<size_t>(i)], nullptr));
      }
      if (one) return displays;
      displays.push_back(
          GetPlatformDisplay(kPlatformSurfaceless, nullptr, nullptr));
    }
    displays.push_back(GetDisplay(nullptr));
    return displays;
  }

  // Returns a current context of the display, or nullptr and sets `error`.
  Context MakeContext(Display display, std::string* error) const {
    constexpr std::array<int32_t, 11> kWanted = {
        kSurfaceType, kPbufferBit, kRenderableType, kOpenGlBit, kRedSize, 8,
        kGreenSize,   8,           kBlueSize,       8,          kNone};
    const auto fail = [&](absl::string_view call) -> Context {
      *error = absl::StrFormat("%s failed (EGL error 0x%x)", call, GetError());
      return nullptr;
    };
    int32_t major;
    int32_t minor;
    if (display == nullptr) return fail("eglGetDisplay");
    if (Initialize(display, &major, &minor) == 0) return fail("eglInitialize");
    Config config;
    int32_t configs = 0;
    Context context = nullptr;
    if (ChooseConfig(display, kWanted.data(), &config, 1, &configs) == 0 ||
        configs == 0) {
      fail("eglChooseConfig");
    } else if (BindAPI(kOpenGlApi) == 0) {
      fail("eglBindAPI");
    } else if (context = CreateContext(display, config, nullptr, nullptr);
               context == nullptr) {
      fail("eglCreateContext");
    } else if (MakeCurrent(display, nullptr, nullptr, context) == 0) {
      fail("eglMakeCurrent");
      DestroyContext(display, context);
      context = nullptr;
    }
    if (context == nullptr) Terminate(display);
    return context;
  }
};

absl::StatusOr<std::unique_ptr<EglContext>> EglContext::Create() {
  const absl::StatusOr<Library>& egl = Library::Load();
  if (!egl.ok()) return egl.status();
  std::string error = "no display or device";
  for (const Display display : egl->Displays()) {
    const Context context = egl->MakeContext(display, &error);
    if (context == nullptr) continue;
    return std::unique_ptr<EglContext>(new EglContext(*egl, display, context));
  }
  return Lacking(absl::StrCat("a libEGL without a driver: ", error));
}

EglContext::~EglContext() {
  egl_.MakeCurrent(display_, nullptr, nullptr, nullptr);
  egl_.DestroyContext(display_, context_);
  egl_.Terminate(display_);
  egl_.ReleaseThread();
}

}  // namespace tandem
