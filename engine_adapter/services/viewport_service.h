// ViewportService: pictures of environments as people look at them.
//
// Data flow: request -> PictureCalls -> CameraPort -> response, or stream.
// Ownership: the host's; the thread that steps calls, between exchanges. Knows
// nothing of rings: another door can call the same functions.
//
//   ViewportService viewport(ports.camera, simulation, queue, schema.num_envs,
//                            config[Service::kViewport].stream_hz);
//   viewport.GetViewportFrame(request, answer);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_VIEWPORT_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_VIEWPORT_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/ports/camera_port.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/services/picture_calls.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// kInvalidArgument for an environment, viewport, size, format or kind that is
// not there or cannot be; otherwise CameraPort's errors.
class ViewportService {
 public:
  // All outlive it but the queue. `most_fps` is what the dispatcher allows a
  // stream.
  ViewportService(CameraPort* port, SimulationPort* simulation,
                  std::shared_ptr<MainThreadQueue> queue, uint32_t num_envs,
                  double most_fps);

  // The streams that run are the client's: without one the answer has no
  // current_config.
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
  PictureCalls calls_;
  // What a stream gives, and whether it still does.
  struct Started {
    rpc::ViewportStreamConfigT config;
    std::weak_ptr<const PictureStream::State> state;
  };
  std::vector<Started> started_;  // the last one last
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_VIEWPORT_SERVICE_H_
