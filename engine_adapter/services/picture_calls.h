// PictureCalls: single pictures and streams of them, for services camera and
// viewport.
//
// Data flow: PictureRequest -> CameraPort -> the render thread ->
// MainThreadQueue -> rpc::ImageFrameT, in the thread that steps.
// Ownership: a service's; the thread that steps calls.
//
//   auto picture = calls.RequestOf(request, IndexOf(request.name));
//   calls.Draw(*picture, request.name, std::move(answer));
//   absl::StatusOr<PictureStream> stream = calls.Stream(*picture, fps);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_PICTURE_CALLS_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_PICTURE_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/ports/camera_port.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/services/moment_watch.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// A stream of pictures that was opened, seen from beside.
class PictureStream {
 public:
  struct State {
    PictureRequest request;
    MomentWatch watch;
    bool drawing = false;
    // Drawn, not yet sent.
    std::optional<absl::StatusOr<rpc::ImageFrameT>> ready = {};
    std::shared_ptr<const void> held = {};  // Picture's, of that one
    uint32_t pictures = 0;                  // drawn
    uint32_t width = 0;                     // of the last
    uint32_t height = 0;
  };

  RpcStream source;
  // Gone when the stream is over.
  std::weak_ptr<const State> state;
};

class PictureCalls {
 public:
  // All outlive it but the queue, which is shared with pictures under way.
  // `of_viewports`: the pictures are theirs, not the cameras'.
  PictureCalls(CameraPort* port, SimulationPort* simulation,
               std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs,
               bool of_viewports)
      : port_(port),
        simulation_(simulation),
        queue_(std::move(queue)),
        num_envs_(num_envs),
        of_viewports_(of_viewports) {}

  // A service's request, for the camera or viewport of that index, or that
  // error. kInvalidArgument for a format or kind that cannot be, or an
  // environment that is not there.
  template <typename Request>
  absl::StatusOr<PictureRequest> RequestOf(
      const Request& request, const absl::StatusOr<uint32_t>& index) const {
    if (!index.ok()) return index.status();
    PictureRequest picture = {.env = request.env_id,
                              .of_viewport = of_viewports_,
                              .index = *index,
                              .width = request.width,
                              .height = request.height};
    absl::Status status = Complete(request.format, request.kind, &picture);
    if (!status.ok()) return status;
    return picture;
  }

  // The state as it is now. `answer` is called once, by the thread that steps,
  // now or later: with the picture, of this name; not at all, perhaps, if
  // nobody waits for it any more.
  void Draw(const PictureRequest& request, std::string name,
            RpcAnswer<rpc::NamedImageFrameT> answer);

  // A picture whenever one is due and something has changed since the last one
  // was begun; the next is begun when the last was taken, so that a slow
  // renderer or reader gets fewer pictures, each of them new and none of them
  // lost; and so does one that finds too much under way. The first is
  // begun here: its errors are those of CameraPort::Draw.
  absl::StatusOr<PictureStream> Stream(const PictureRequest& request,
                                       double hz);

 private:
  // With Picture::held, of a picture.
  using Then = std::function<void(absl::StatusOr<rpc::ImageFrameT>,
                                  std::shared_ptr<const void>)>;
  absl::Status Begin(const PictureRequest& request,
                     std::weak_ptr<const void> wanted, Then then);
  absl::Status Complete(absl::string_view format, rpc::CameraStreamKind kind,
                        PictureRequest* request) const;
  absl::Status BeginNext(const std::shared_ptr<PictureStream::State>& state);

  CameraPort* port_;
  SimulationPort* simulation_;
  std::shared_ptr<MainThreadQueue> queue_;
  uint32_t num_envs_;
  bool of_viewports_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_PICTURE_CALLS_H_
