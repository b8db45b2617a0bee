#include "engine_adapter/services/picture_calls.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/frames/picture.h"
#include "engine_adapter/frames/picture_encoder.h"
#include "engine_adapter/services/env_selection.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

void Fill(Picture picture, rpc::ImageFrameT* frame) {
  frame->data = std::move(picture.data);
  frame->width = picture.width;
  frame->height = picture.height;
  frame->channels = picture.channels;
  frame->format = std::string(NameOf(picture.format));
  frame->depth_scale = picture.depth_scale;
}

}  // namespace

absl::Status PictureCalls::Complete(absl::string_view format,
                                    rpc::CameraStreamKind kind,
                                    PictureRequest* request) const {
  absl::Status status = CheckEnv(request->env, num_envs_);
  if (!status.ok()) return status;
  if (kind > rpc::CameraStreamKind::MAX) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("kind: expected COLOR or DEPTH, found ",
                                  static_cast<int>(kind)));
  }
  request->depth = kind == rpc::CameraStreamKind::DEPTH;
  const absl::StatusOr<PictureFormat> named =
      PictureFormatNamed(format, request->depth);
  if (!named.ok()) return named.status();
  request->format = *named;
  return absl::OkStatus();
}

void PictureCalls::Draw(const PictureRequest& request, std::string name,
                        RpcAnswer<rpc::NamedImageFrameT> answer) {
  const absl::Status begun = Begin(
      request, answer.wanted(),
      [answer, name = std::move(name)](
          absl::StatusOr<rpc::ImageFrameT> frame,
          const std::shared_ptr<const void>& /*held*/) {
        if (!frame.ok()) {
          answer(frame.status());
          return;
        }
        rpc::NamedImageFrameT response;
        response.name = name;
        response.frame = std::make_unique<rpc::ImageFrameT>(*std::move(frame));
        answer(std::move(response));
      });
  if (!begun.ok()) answer(begun);
}

// `then` is called unless this fails, or `wanted` expires.
absl::Status PictureCalls::Begin(const PictureRequest& request,
                                 std::weak_ptr<const void> wanted, Then then) {
  rpc::ImageFrameT frame;
  frame.timestamp_ms = UnixMillis();
  frame.env_id = request.env;
  frame.frame_seq = simulation_->frame_seq();
  // In the render thread, which hands everything on: `then` may stand on what
  // only the thread that steps may touch.
  return port_->Draw(
      request, std::move(wanted),
      [queue = queue_, then = std::move(then),
       frame = std::move(frame)](absl::StatusOr<Picture> picture) mutable {
        // Shared since a std::function has to be copyable, and pictures are
        // large.
        auto result = std::make_shared<absl::StatusOr<rpc::ImageFrameT>>(
            picture.ok() ? absl::StatusOr<rpc::ImageFrameT>(std::move(frame))
                         : absl::StatusOr<rpc::ImageFrameT>(picture.status()));
        std::shared_ptr<const void> held;
        if (picture.ok()) {
          held = std::move(picture->held);
          Fill(*std::move(picture), &**result);
        }
        queue->Post(
            [then = std::move(then), result = std::move(result),
             held = std::move(held)] { then(std::move(*result), held); });
      });
}

absl::StatusOr<PictureStream> PictureCalls::Stream(
    const PictureRequest& request, double hz) {
  auto state = std::make_shared<PictureStream::State>(PictureStream::State{
      .request = request, .watch = MomentWatch(simulation_)});
  state->watch.IsNew();  // this moment is begun here
  if (absl::Status begun = BeginNext(state); !begun.ok()) return begun;
  PictureStream stream;
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
      state->watch.Forget();
      return items;
    }
    if (!begun.ok()) return begun;
    return items;
  };
  return stream;
}

absl::Status PictureCalls::BeginNext(
    const std::shared_ptr<PictureStream::State>& state) {
  // A stream that is over meanwhile is not kept, and its picture not drawn.
  const std::weak_ptr<PictureStream::State> kept = state;
  absl::Status begun =
      Begin(state->request, kept,
            [kept](absl::StatusOr<rpc::ImageFrameT> frame,
                   std::shared_ptr<const void> held) {
              const std::shared_ptr<PictureStream::State> stream = kept.lock();
              if (stream == nullptr) return;
              stream->drawing = false;
              if (frame.ok()) {
                frame->frame_number = ++stream->pictures;
                stream->width = frame->width;
                stream->height = frame->height;
              }
              stream->ready = std::move(frame);
              stream->held = std::move(held);
            });
  // Not before the thread that steps looks again is it told of the picture.
  state->drawing = begun.ok();
  return begun;
}

}  // namespace tandem
