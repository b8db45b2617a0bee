#include "engine_adapter/services/viewport_service.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine_adapter/services/env_selection.h"
#include "engine_adapter/services/named_stream.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"

namespace tandem {

ViewportService::ViewportService(CameraPort* port, SimulationPort* simulation,
                                 std::shared_ptr<MainThreadQueue> queue,
                                 uint32_t num_envs, double most_fps)
    : port_(port),
      num_envs_(num_envs),
      most_fps_(most_fps),
      calls_(port, simulation, std::move(queue), num_envs,
             /*of_viewports=*/true) {}

absl::StatusOr<rpc::GetViewportInfoResponseT> ViewportService::GetViewportInfo(
    const rpc::GetViewportInfoRequestT& request) const {
  if (absl::Status status = CheckEnv(request.env_id, num_envs_); !status.ok()) {
    return status;
  }
  rpc::GetViewportInfoResponseT response;
  response.available_viewports = port_->Viewports();
  const auto last =
      std::find_if(started_.rbegin(), started_.rend(),
                   [](const Started& each) { return !each.state.expired(); });
  if (last == started_.rend()) return response;
  auto config = std::make_unique<rpc::ViewportStreamConfigT>(last->config);
  const std::shared_ptr<const PictureStream::State> state = last->state.lock();
  if (state->pictures > 0) {
    config->width = state->width;
    config->height = state->height;
  }
  response.current_config = std::move(config);
  return response;
}

void ViewportService::GetViewportFrame(
    const rpc::GetViewportFrameRequestT& request,
    RpcAnswer<rpc::NamedImageFrameT> answer) {
  const absl::StatusOr<PictureRequest> picture =
      calls_.RequestOf(request, IndexOf(request.viewport_name));
  if (!picture.ok()) {
    answer(picture.status());
    return;
  }
  calls_.Draw(*picture, port_->Viewports()[picture->index], std::move(answer));
}

absl::StatusOr<RpcStream> ViewportService::StreamViewport(
    const rpc::StartViewportStreamRequestT& request) {
  const absl::StatusOr<PictureRequest> picture =
      calls_.RequestOf(request, IndexOf(request.viewport_name));
  if (!picture.ok()) return picture.status();
  absl::StatusOr<PictureStream> stream =
      calls_.Stream(*picture, request.target_fps);
  if (!stream.ok()) return stream.status();
  const double fps = request.target_fps == 0
                         ? most_fps_
                         : std::min<double>(request.target_fps, most_fps_);
  std::erase_if(started_,
                [](const Started& each) { return each.state.expired(); });
  Started& started = started_.emplace_back();
  started.state = stream->state;
  started.config.streaming = true;
  started.config.viewport_name = port_->Viewports()[picture->index];
  started.config.fps = static_cast<uint32_t>(std::ceil(fps));
  started.config.width = request.width;
  started.config.height = request.height;
  return NamedStream(std::move(stream->source), started.config.viewport_name);
}

absl::StatusOr<uint32_t> ViewportService::IndexOf(
    const std::string& name) const {
  if (name.empty()) return 0;
  const std::vector<std::string>& names = port_->Viewports();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<uint32_t>(found - names.begin());
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("viewport_name: expected one of ",
                   absl::StrJoin(names, ", "), "; found ", Quoted(name)));
}

}  // namespace tandem
