#include "engine_adapter/services/camera_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/services/env_selection.h"
#include "engine_adapter/services/named_stream.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"

namespace tandem {
namespace {

std::string Known(const std::vector<rpc::CameraInfoT>& cameras) {
  constexpr size_t kShown = 8;
  if (cameras.empty()) return "one of a model that has cameras";
  std::string known = "one of the model's, by name or id: ";
  for (size_t i = 0; i < cameras.size() && i < kShown; ++i) {
    absl::StrAppend(&known, i > 0 ? ", " : "", "'", cameras[i].name, "' ",
                    cameras[i].id);
  }
  if (cameras.size() > kShown) absl::StrAppend(&known, ", ...");
  return known;
}

}  // namespace

CameraService::CameraService(CameraPort* port, SimulationPort* simulation,
                             std::shared_ptr<MainThreadQueue> queue,
                             uint32_t num_envs)
    : port_(port),
      num_envs_(num_envs),
      calls_(port, simulation, std::move(queue), num_envs,
             /*of_viewports=*/false) {}

absl::StatusOr<rpc::ListCamerasResponseT> CameraService::ListCameras(
    const rpc::ListCamerasRequestT& request) const {
  if (absl::Status status = CheckEnv(request.env_id, num_envs_); !status.ok()) {
    return status;
  }
  rpc::ListCamerasResponseT response;
  for (const rpc::CameraInfoT& camera : port_->Cameras()) {
    response.cameras.push_back(std::make_unique<rpc::CameraInfoT>(camera));
  }
  return response;
}

void CameraService::GetCameraFrame(const rpc::GetCameraFrameRequestT& request,
                                   RpcAnswer<rpc::NamedImageFrameT> answer) {
  const absl::StatusOr<PictureRequest> picture =
      calls_.RequestOf(request, IndexOf(request.id, request.name));
  if (!picture.ok()) {
    answer(picture.status());
    return;
  }
  calls_.Draw(*picture, port_->Cameras()[picture->index].name,
              std::move(answer));
}

absl::StatusOr<RpcStream> CameraService::StreamCamera(
    const rpc::StreamCameraRequestT& request) {
  const absl::StatusOr<PictureRequest> picture =
      calls_.RequestOf(request, IndexOf(request.id, request.name));
  if (!picture.ok()) return picture.status();
  absl::StatusOr<PictureStream> stream =
      calls_.Stream(*picture, request.target_fps);
  if (!stream.ok()) return stream.status();
  return NamedStream(std::move(stream->source),
                     port_->Cameras()[picture->index].name);
}

absl::StatusOr<uint32_t> CameraService::IndexOf(uint64_t id,
                                                const std::string& name) const {
  const std::vector<rpc::CameraInfoT>& cameras = port_->Cameras();
  for (uint32_t index = 0; index < cameras.size(); ++index) {
    if (name.empty() ? cameras[index].id == id : cameras[index].name == name) {
      return index;
    }
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("camera: expected ", Known(cameras), "; found ",
                   name.empty() ? absl::StrCat("id ", id) : Quoted(name)));
}

}  // namespace tandem
