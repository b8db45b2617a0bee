#include "engine_adapter/services/image_services.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/quoted.h"
#include "engine_adapter/image.h"
#include "engine_adapter/services/env_selection.h"

namespace tandem {
namespace {

void Fill(Image image, rpc::ImageFrameT* frame) {
  frame->data = std::move(image.data);
  frame->width = image.width;
  frame->height = image.height;
  frame->channels = image.channels;
  frame->format = std::string(NameOf(image.format));
  frame->depth_scale = image.depth_scale;
}

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

absl::Status ImageCalls::Complete(absl::string_view format,
                                  rpc::CameraStreamKind kind,
                                  ImageRequest* request) const {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request->env, num_envs_));
  if (kind > rpc::CameraStreamKind::MAX) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("kind: expected COLOR or DEPTH, found ",
                                  static_cast<int>(kind)));
  }
  request->depth = kind == rpc::CameraStreamKind::DEPTH;
  TANDEM_ASSIGN_OR_RETURN(request->format,
                          ImageFormatNamed(format, request->depth));
  return absl::OkStatus();
}

std::string ImageCalls::NameOf(const ImageRequest& request) const {
  return request.of_viewport ? port_->Viewports()[request.index]
                             : port_->Cameras()[request.index].name;
}

absl::StatusOr<ImageRequest> ImageCalls::Draw(
    const ImageRequest& request, RpcAnswer<rpc::NamedImageFrameT> answer) {
  TANDEM_RETURN_IF_ERROR(BeginImage(
      request, answer.wanted(),
      [answer, name = NameOf(request)](
          absl::StatusOr<rpc::ImageFrameT> frame,
          const std::shared_ptr<const void>& /*held*/) {
        if (!frame.ok()) return answer(frame.status());
        rpc::NamedImageFrameT response;
        response.name = name;
        response.frame = std::make_unique<rpc::ImageFrameT>(*std::move(frame));
        answer(std::move(response));
      }));
  return request;
}

// The stepping thread calls `then`, unless this fails or `wanted` expires.
absl::Status ImageCalls::BeginImage(const ImageRequest& request,
                                    std::weak_ptr<const void> wanted,
                                    Then then) {
  rpc::ImageFrameT frame;
  frame.timestamp_ms = UnixMillis();
  frame.env_id = request.env;
  frame.frame_seq = simulation_->frame_seq();
  // The render thread calls this, and passes the image on: only the stepping
  // thread may use the data of `then`.
  return port_->Draw(
      request, std::move(wanted),
      [queue = queue_, then = std::move(then),
       frame = std::move(frame)](absl::StatusOr<Image> image) mutable {
        // A shared_ptr, since a std::function must be copyable and images are
        // large.
        auto result = std::make_shared<absl::StatusOr<rpc::ImageFrameT>>(
            image.ok() ? absl::StatusOr<rpc::ImageFrameT>(std::move(frame))
                       : absl::StatusOr<rpc::ImageFrameT>(image.status()));
        std::shared_ptr<const void> held;
        if (image.ok()) {
          held = std::move(image->held);
          Fill(*std::move(image), &**result);
        }
        queue->Post(
            [then = std::move(then), result = std::move(result),
             held = std::move(held)] { then(std::move(*result), held); });
      });
}

absl::StatusOr<ImageStream> ImageCalls::Begin(const ImageRequest& request,
                                              double hz) {
  auto state = std::make_shared<ImageStream::State>(
      ImageStream::State{.request = request,
                         .name = NameOf(request),
                         .watch = MomentWatch(simulation_)});
  state->watch.IsNew();  // the first image shows this moment
  TANDEM_RETURN_IF_ERROR(BeginNext(state));
  ImageStream stream;
  stream.state = state;
  stream.source.hz = hz;
  using Items = std::vector<rpc::PayloadUnion>;
  stream.source.next = [this, state]() -> absl::StatusOr<Items> {
    Items items;
    if (state->ready) {
      absl::StatusOr<rpc::ImageFrameT> frame = *std::move(state->ready);
      state->ready.reset();
      state->held.reset();
      if (!frame.ok()) return frame.status();
      items.emplace_back();
      items.back().Set(*std::move(frame));
      return items;
    }
    if (state->drawing || !state->watch.IsNew()) return items;
    absl::Status begun = BeginNext(state);
    if (CodeOf(begun) == ErrorCode::kRingFull) {
      state->watch.Reset();
      return items;
    }
    if (!begun.ok()) return begun;
    return items;
  };
  return stream;
}

absl::Status ImageCalls::BeginNext(
    const std::shared_ptr<ImageStream::State>& state) {
  // The request does not keep the stream alive: after the stream's end the
  // engine does not render its image.
  const std::weak_ptr<ImageStream::State> kept = state;
  absl::Status begun = BeginImage(
      state->request, kept,
      [kept](absl::StatusOr<rpc::ImageFrameT> frame,
             std::shared_ptr<const void> held) {
        const std::shared_ptr<ImageStream::State> stream = kept.lock();
        if (stream == nullptr) return;
        stream->drawing = false;
        if (frame.ok()) {
          frame->name = stream->name;
          frame->frame_number = ++stream->images;
          stream->width = frame->width;
          stream->height = frame->height;
        }
        stream->ready = std::move(frame);
        stream->held = std::move(held);
      });
  // The stepping thread runs that lambda only in its next poll of the queue.
  state->drawing = begun.ok();
  return begun;
}

absl::StatusOr<rpc::ListCamerasResponseT> CameraService::ListCameras(
    const rpc::ListCamerasRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs()));
  rpc::ListCamerasResponseT response;
  for (const rpc::CameraInfoT& camera : port()->Cameras()) {
    response.cameras.push_back(std::make_unique<rpc::CameraInfoT>(camera));
  }
  return response;
}

absl::StatusOr<RpcStream> CameraService::StreamCamera(
    const rpc::StreamCameraRequestT& request) {
  TANDEM_ASSIGN_OR_RETURN(ImageStream stream,
                          Stream(request, IndexOf(request.id, request.name)));
  return std::move(stream.source);
}

absl::StatusOr<uint32_t> CameraService::IndexOf(uint64_t id,
                                                const std::string& name) const {
  const std::vector<rpc::CameraInfoT>& cameras = port()->Cameras();
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

absl::StatusOr<rpc::GetViewportInfoResponseT> ViewportService::GetViewportInfo(
    const rpc::GetViewportInfoRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs()));
  rpc::GetViewportInfoResponseT response;
  response.available_viewports = port()->Viewports();
  const auto last =
      std::find_if(started_.rbegin(), started_.rend(),
                   [](const Started& each) { return !each.state.expired(); });
  if (last == started_.rend()) return response;
  auto config = std::make_unique<rpc::ViewportStreamConfigT>(last->config);
  const std::shared_ptr<const ImageStream::State> state = last->state.lock();
  if (state->images > 0) {
    config->width = state->width;
    config->height = state->height;
  }
  response.current_config = std::move(config);
  return response;
}

absl::StatusOr<RpcStream> ViewportService::StreamViewport(
    const rpc::StartViewportStreamRequestT& request) {
  TANDEM_ASSIGN_OR_RETURN(ImageStream stream,
                          Stream(request, IndexOf(request.viewport_name)));
  const double fps = request.target_fps == 0
                         ? most_fps_
                         : std::min<double>(request.target_fps, most_fps_);
  std::erase_if(started_,
                [](const Started& each) { return each.state.expired(); });
  Started& started = started_.emplace_back();
  started.state = stream.state;
  started.config.streaming = true;
  started.config.viewport_name = stream.state.lock()->name;
  started.config.fps = static_cast<uint32_t>(std::ceil(fps));
  started.config.width = request.width;
  started.config.height = request.height;
  return std::move(stream.source);
}

absl::StatusOr<uint32_t> ViewportService::IndexOf(
    const std::string& name) const {
  if (name.empty()) return 0;
  const std::vector<std::string>& names = port()->Viewports();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<uint32_t>(found - names.begin());
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("viewport_name: expected one of ",
                   absl::StrJoin(names, ", "), "; found ", Quoted(name)));
}

absl::StatusOr<rpc::DebugDrawResponseT> DebugService::Draw(
    const rpc::DebugDrawRequestT& request) {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs_));
  simulation_->NoteChange();  // an engine that fails may have drawn some
  TANDEM_RETURN_IF_ERROR(port_->Draw(request));
  rpc::DebugDrawResponseT response;
  response.success = true;
  return response;
}

}  // namespace tandem
