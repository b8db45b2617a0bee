// CameraPort: pictures of an engine's environments, through cameras of their
// models and through viewports.
//
// Data flow: services camera and viewport -> Draw: a copy of the state as it
// is now -> the engine's render thread -> done.
// Ownership: the engine's; the thread that steps calls, between exchanges.
//
//   port->Draw({.env = 3, .index = 0, .width = 320, .height = 240}, wanted,
//              [](absl::StatusOr<Picture> picture) { ... });

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_CAMERA_PORT_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_CAMERA_PORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/frames/picture.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct CameraInfoT;
}  // namespace tandem::rpc

namespace tandem {

struct PictureRequest {
  uint32_t env = 0;
  // Of Cameras(), by index, or of Viewports().
  bool of_viewport = false;
  uint32_t index = 0;
  uint32_t width = 0;  // pixels; 0: the camera's or viewport's own
  uint32_t height = 0;
  bool depth = false;
  PictureFormat format = PictureFormat::kRaw;
};

class CameraPort {
 public:
  virtual ~CameraPort() = default;

  // The same in every environment; ids are those of their entities.
  virtual const std::vector<rpc::CameraInfoT>& Cameras() const = 0;
  // Their names, at least one.
  virtual const std::vector<std::string>& Viewports() const = 0;

  // Copies the environment as it is now, and returns; `done` is called once,
  // by the render thread, with the picture or kUnsupported (nothing here can
  // draw; says what is missing) or kEngineFailed. Once `wanted` has expired
  // nobody waits for the picture: it need not be drawn, nor `done` be called.
  // Errors, and `done` is not called then: kInvalidArgument for a size that
  // cannot be; kRingFull if too much is under way, Picture::held included: to
  // be asked again.
  using Done = std::function<void(absl::StatusOr<Picture>)>;
  virtual absl::Status Draw(const PictureRequest& request,
                            std::weak_ptr<const void> wanted, Done done) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_CAMERA_PORT_H_
