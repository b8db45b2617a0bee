// CameraService: pictures through the cameras of a model.
//
// Data flow: request -> PictureCalls -> CameraPort -> response, or stream.
// Ownership: the host's; the thread that steps calls, between exchanges. Knows
// nothing of rings: another door can call the same functions.
//
//   CameraService camera(ports.camera, simulation, queue, schema.num_envs);
//   camera.GetCameraFrame(request, answer);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_CAMERA_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_CAMERA_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine_adapter/ports/camera_port.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/services/picture_calls.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// kInvalidArgument for an environment, camera, size, format or kind that is not
// there or cannot be; otherwise CameraPort's errors.
class CameraService {
 public:
  // All outlive it but the queue.
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
  PictureCalls calls_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_CAMERA_SERVICE_H_
