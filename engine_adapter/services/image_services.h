// CameraService, ViewportService: single images and streams of them, through a
// model's cameras and through viewports. DebugService: lines and arrows in
// them.
//
// Data flow: request -> ImageCalls -> CameraPort -> the render thread ->
// MainThreadQueue -> rpc::ImageFrameT, in the stepping thread.
// Ownership: the host's; the stepping thread calls, between exchanges. The
// services do not depend on the RPC rings.
//
//   CameraService camera(ports.camera, simulation, queue, schema.num_envs);
//   camera.GetCameraFrame(request, answer);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_IMAGE_SERVICES_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_IMAGE_SERVICES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/ports/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/services/moment_watch.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// A stream of images, and its state for ViewportService.
class ImageStream {
 public:
  struct State {
    ImageRequest request;
    MomentWatch watch;
    bool drawing = false;
    // Drawn, not yet sent.
    std::optional<absl::StatusOr<rpc::ImageFrameT>> ready = {};
    std::shared_ptr<const void> held = {};  // Image's, of that one
    uint32_t images = 0;                    // drawn
    uint32_t width = 0;                     // of the last
    uint32_t height = 0;
  };

  RpcStream source;
  // Gone when the stream is over.
  std::weak_ptr<const State> state;
};

class ImageCalls {
 public:
  // All outlive it except the queue, which requests under way share.
  // `of_viewports`: images of viewports, not of cameras.
  ImageCalls(CameraPort* port, SimulationPort* simulation,
             std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs,
             bool of_viewports)
      : port_(port),
        simulation_(simulation),
        queue_(std::move(queue)),
        num_envs_(num_envs),
        of_viewports_(of_viewports) {}

  // A service's request, for the camera or viewport of that index, or that
  // error. kInvalidArgument for an invalid format, kind or environment.
  template <typename Request>
  absl::StatusOr<ImageRequest> RequestOf(
      const Request& request, const absl::StatusOr<uint32_t>& index) const {
    if (!index.ok()) return index.status();
    ImageRequest image = {.env = request.env_id,
                          .of_viewport = of_viewports_,
                          .index = *index,
                          .width = request.width,
                          .height = request.height};
    absl::Status status = Complete(request.format, request.kind, &image);
    if (!status.ok()) return status;
    return image;
  }

  // Of the current state. The stepping thread calls `answer` once, now or
  // later, with the image and this name; perhaps never, if its caller has left.
  void Draw(const ImageRequest& request, std::string name,
            RpcAnswer<rpc::NamedImageFrameT> answer);

  // An image whenever one is due and the state has changed since the last one
  // began. The next begins when the last was taken: a slow renderer or reader
  // gets fewer images, each of them new, none of them lost. So does a stream
  // that finds too many requests under way. The first begins here; its errors
  // are those of CameraPort::Draw.
  absl::StatusOr<ImageStream> Stream(const ImageRequest& request, double hz);

 private:
  // With Image::held, of an image.
  using Then = std::function<void(absl::StatusOr<rpc::ImageFrameT>,
                                  std::shared_ptr<const void>)>;
  absl::Status Begin(const ImageRequest& request,
                     std::weak_ptr<const void> wanted, Then then);
  absl::Status Complete(absl::string_view format, rpc::CameraStreamKind kind,
                        ImageRequest* request) const;
  absl::Status BeginNext(const std::shared_ptr<ImageStream::State>& state);

  CameraPort* port_;
  SimulationPort* simulation_;
  std::shared_ptr<MainThreadQueue> queue_;
  uint32_t num_envs_;
  bool of_viewports_;
};

// `stream` gives rpc::ImageFrameT and nothing else.
inline RpcStream NamedStream(RpcStream stream, std::string name) {
  auto next = [next = std::move(stream.next), name = std::move(name)] {
    auto items = next();
    if (!items.ok()) return items;
    for (rpc::PayloadUnion& item : *items) item.AsImageFrame()->name = name;
    return items;
  };
  return {
      .hz = stream.hz, .next = std::move(next), .pass = std::move(stream.pass)};
}

// kInvalidArgument for an invalid environment, camera, size, format or kind;
// otherwise CameraPort's errors.
class CameraService {
 public:
  // All outlive it except the queue.
  CameraService(CameraPort* port, SimulationPort* simulation,
                std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs);

  absl::StatusOr<rpc::ListCamerasResponseT> ListCameras(
      const rpc::ListCamerasRequestT& request) const;

  void GetCameraFrame(const rpc::GetCameraFrameRequestT& request,
                      RpcAnswer<rpc::NamedImageFrameT> answer);

  // Of rpc::ImageFrameT.
  absl::StatusOr<RpcStream> StreamCamera(
      const rpc::StreamCameraRequestT& request);

 private:
  absl::StatusOr<uint32_t> IndexOf(uint64_t id, const std::string& name) const;

  CameraPort* port_;
  uint32_t num_envs_;
  ImageCalls calls_;
};

// kInvalidArgument for an invalid environment, viewport, size, format or kind;
// otherwise CameraPort's errors.
class ViewportService {
 public:
  // All outlive it except the queue. `most_fps`: the dispatcher's limit of a
  // stream.
  ViewportService(CameraPort* port, SimulationPort* simulation,
                  std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs,
                  double most_fps);

  // current_config is that of a running stream, or missing.
  absl::StatusOr<rpc::GetViewportInfoResponseT> GetViewportInfo(
      const rpc::GetViewportInfoRequestT& request) const;

  void GetViewportFrame(const rpc::GetViewportFrameRequestT& request,
                        RpcAnswer<rpc::NamedImageFrameT> answer);

  // Of rpc::ImageFrameT.
  absl::StatusOr<RpcStream> StreamViewport(
      const rpc::StartViewportStreamRequestT& request);

 private:
  absl::StatusOr<uint32_t> IndexOf(const std::string& name) const;

  CameraPort* port_;
  uint32_t num_envs_;
  double most_fps_;
  ImageCalls calls_;
  // What a stream gives, and whether it still does.
  struct Started {
    rpc::ViewportStreamConfigT config;
    std::weak_ptr<const ImageStream::State> state;
  };
  std::vector<Started> started_;  // the last one last
};

class DebugService {
 public:
  // Both outlive it.
  DebugService(DebugPort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  // DebugPort's errors, and kInvalidArgument for an invalid environment;
  // nothing has changed then.
  absl::StatusOr<rpc::DebugDrawResponseT> Draw(
      const rpc::DebugDrawRequestT& request);

 private:
  DebugPort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_IMAGE_SERVICES_H_
