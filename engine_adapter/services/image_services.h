// CameraService, ViewportService: single images and streams of images, from a
// model's cameras and from viewports. DebugService: lines and arrows in these
// images.
//
// Data flow: request -> ImageCalls -> CameraPort -> the render thread ->
// MainThreadQueue -> rpc::ImageFrameT, in the stepping thread.
// Ownership: the host owns them; the stepping thread calls them between
// exchanges. The services do not depend on the RPC rings.

#pragma once

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
#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/services/moment_watch.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// A stream of images, and its state for ViewportService.
struct ImageStream {
  struct State {
    ImageRequest request;
    std::string name;  // of the camera or viewport
    MomentWatch watch;
    bool drawing = false;
    // Rendered, not yet sent.
    std::optional<absl::StatusOr<rpc::ImageFrameT>> ready = {};
    std::shared_ptr<const void> held = {};  // the Image::held of `ready`
    uint32_t images = 0;                    // number rendered
    uint32_t width = 0;                     // of the last image
    uint32_t height = 0;
  };

  RpcStream source;
  // Expired after the end of the stream.
  std::weak_ptr<const State> state;
};

class ImageCalls {
 public:
  // `port` and `simulation` must outlive this object; requests in progress
  // share the queue. `of_viewports`: images of viewports, not of cameras.
  ImageCalls(CameraPort* port, SimulationPort* simulation,
             std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs,
             bool of_viewports)
      : port_(port),
        simulation_(simulation),
        queue_(std::move(queue)),
        num_envs_(num_envs),
        of_viewports_(of_viewports) {}

  // Answers with an image of the current state, from the camera or viewport of
  // this index. The stepping thread calls `answer` once, now or later, or never
  // if its caller has left. kInvalidArgument for an invalid format, kind or
  // environment; otherwise the error of `index`, or those of CameraPort::Draw.
  template <typename Request>
  void Answer(const Request& request, const absl::StatusOr<uint32_t>& index,
              RpcAnswer<rpc::NamedImageFrameT> answer) {
    absl::StatusOr<ImageRequest> image = RequestOf(request, index);
    if (image.ok()) image = Draw(*image, answer);
    if (!image.ok()) answer(image.status());
  }

  // Opens a stream. An image begins when one is due, the state has changed
  // since the begin of the last one, and that one was sent. So a slow renderer
  // or reader gets fewer images; each is new, none is lost. The same applies if
  // too many requests are unanswered. This call begins the first image. Errors:
  // as Answer.
  template <typename Request>
  absl::StatusOr<ImageStream> Stream(const Request& request,
                                     const absl::StatusOr<uint32_t>& index) {
    TANDEM_ASSIGN_OR_RETURN(const ImageRequest image,
                            RequestOf(request, index));
    return Begin(image, request.target_fps);
  }

 protected:
  CameraPort* port() const { return port_; }
  uint32_t num_envs() const { return num_envs_; }

 private:
  // Gets an image, and its Image::held.
  using Then = std::function<void(absl::StatusOr<rpc::ImageFrameT>,
                                  std::shared_ptr<const void>)>;

  template <typename Request>
  absl::StatusOr<ImageRequest> RequestOf(
      const Request& request, const absl::StatusOr<uint32_t>& index) const {
    if (!index.ok()) return index.status();
    ImageRequest image = {.env = request.env_id,
                          .of_viewport = of_viewports_,
                          .index = *index,
                          .width = request.width,
                          .height = request.height};
    TANDEM_RETURN_IF_ERROR(Complete(request.format, request.kind, &image));
    return image;
  }
  absl::Status Complete(absl::string_view format, rpc::CameraStreamKind kind,
                        ImageRequest* request) const;
  std::string NameOf(const ImageRequest& request) const;
  absl::StatusOr<ImageRequest> Draw(const ImageRequest& request,
                                    RpcAnswer<rpc::NamedImageFrameT> answer);
  absl::StatusOr<ImageStream> Begin(const ImageRequest& request, double hz);
  absl::Status BeginNext(const std::shared_ptr<ImageStream::State>& state);
  absl::Status BeginImage(const ImageRequest& request,
                          std::weak_ptr<const void> wanted, Then then);

  CameraPort* port_;
  SimulationPort* simulation_;
  std::shared_ptr<MainThreadQueue> queue_;
  uint32_t num_envs_;
  bool of_viewports_;
};

// kInvalidArgument for an invalid environment, camera, size, format or kind;
// otherwise CameraPort's errors.
class CameraService : private ImageCalls {
 public:
  // `port` and `simulation` must outlive this object.
  CameraService(CameraPort* port, SimulationPort* simulation,
                std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs)
      : ImageCalls(port, simulation, std::move(queue), num_envs,
                   /*of_viewports=*/false) {}

  absl::StatusOr<rpc::ListCamerasResponseT> ListCameras(
      const rpc::ListCamerasRequestT& request) const;

  void GetCameraFrame(const rpc::GetCameraFrameRequestT& request,
                      RpcAnswer<rpc::NamedImageFrameT> answer) {
    Answer(request, IndexOf(request.id, request.name), answer);
  }

  // Streams rpc::ImageFrameT.
  absl::StatusOr<RpcStream> StreamCamera(
      const rpc::StreamCameraRequestT& request);

 private:
  absl::StatusOr<uint32_t> IndexOf(uint64_t id, const std::string& name) const;
};

// kInvalidArgument for an invalid environment, viewport, size, format or kind;
// otherwise CameraPort's errors.
class ViewportService : private ImageCalls {
 public:
  // `port` and `simulation` must outlive this object. `most_fps`: the
  // dispatcher's limit of a stream.
  ViewportService(CameraPort* port, SimulationPort* simulation,
                  std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs,
                  double most_fps)
      : ImageCalls(port, simulation, std::move(queue), num_envs,
                   /*of_viewports=*/true),
        most_fps_(most_fps) {}

  // current_config is the one of a running stream; absent if there is none.
  absl::StatusOr<rpc::GetViewportInfoResponseT> GetViewportInfo(
      const rpc::GetViewportInfoRequestT& request) const;

  void GetViewportFrame(const rpc::GetViewportFrameRequestT& request,
                        RpcAnswer<rpc::NamedImageFrameT> answer) {
    Answer(request, IndexOf(request.viewport_name), answer);
  }

  // Streams rpc::ImageFrameT.
  absl::StatusOr<RpcStream> StreamViewport(
      const rpc::StartViewportStreamRequestT& request);

 private:
  absl::StatusOr<uint32_t> IndexOf(const std::string& name) const;

  double most_fps_;
  // A stream's configuration, and its state while it exists.
  struct Started {
    rpc::ViewportStreamConfigT config;
    std::weak_ptr<const ImageStream::State> state;
  };
  std::vector<Started> started_;  // oldest first
};

class DebugService {
 public:
  // Both ports must outlive this object.
  DebugService(DebugPort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  // Errors: those of DebugPort, and kInvalidArgument for an invalid
  // environment; nothing has changed then.
  absl::StatusOr<rpc::DebugDrawResponseT> Draw(
      const rpc::DebugDrawRequestT& request);

 private:
  DebugPort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem
