#include "sdk/foreign_draws.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/image.h"
#include "sdk/call_result.h"

namespace tandem {
namespace {

// Bytes of a pixel; 0: no such format.
size_t PixelBytes(uint32_t format) {
  switch (format) {
    case TANDEM_RGB8:
      return 3;
    case TANDEM_RGBA8:
    case TANDEM_BGRA8:
    case TANDEM_DEPTH32F:
      return 4;
    default:
      return 0;
  }
}

absl::Status Refused(absl::string_view text) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("image->", text, "; the draw is unanswered"));
}

absl::Status CheckImage(const tandem_image& image, const tandem_draw& draw) {
  if (image.data == nullptr) return MissingArgument("image->data");
  const bool is_depth = image.format == TANDEM_DEPTH32F;
  if (PixelBytes(image.format) == 0 || is_depth != (draw.depth != 0)) {
    return Refused(absl::StrCat(
        "format: expected ",
        draw.depth != 0 ? "TANDEM_DEPTH32F"
                        : "TANDEM_RGB8, TANDEM_RGBA8 or TANDEM_BGRA8",
        ", found ", image.format));
  }
  if (image.width != draw.width || image.height != draw.height) {
    return Refused(absl::StrCat("width, height: expected ", draw.width, "x",
                                draw.height, ", as tandem_draw says, found ",
                                image.width, "x", image.height));
  }
  const auto row = static_cast<int64_t>(PixelBytes(image.format) * image.width);
  if (image.stride != 0 && std::abs(image.stride) < row) {
    return Refused(absl::StrCat("stride: expected 0, or at least ", row,
                                " bytes, found ", image.stride));
  }
  return absl::OkStatus();
}

void CopyRow(uint32_t format, const uint8_t* from, uint32_t width,
             uint8_t* rgb) {
  const size_t red = format == TANDEM_BGRA8 ? 2 : 0;
  for (uint32_t x = 0; x < width; ++x, from += 4, rgb += kRgbBytes) {
    rgb[0] = from[red];
    rgb[1] = from[1];
    rgb[2] = from[2 - red];
  }
}

DrawnImage CopyOf(const tandem_image& image) {
  const size_t pixels = size_t{image.width} * image.height;
  const size_t row_bytes = PixelBytes(image.format) * image.width;
  const int64_t stride =
      image.stride != 0 ? image.stride : static_cast<int64_t>(row_bytes);
  DrawnImage copy;
  if (image.format == TANDEM_DEPTH32F) {
    copy.metres.resize(pixels);
  } else {
    copy.rgb.resize(pixels * kRgbBytes);
  }
  const auto* from = static_cast<const uint8_t*>(image.data);
  for (size_t y = 0; y < image.height; ++y, from += stride) {
    if (image.format == TANDEM_DEPTH32F) {
      std::memcpy(copy.metres.data() + y * image.width, from, row_bytes);
      continue;
    }
    uint8_t* const to = copy.rgb.data() + y * image.width * kRgbBytes;
    if (image.format == TANDEM_RGB8) {
      std::memcpy(to, from, row_bytes);
    } else {
      CopyRow(image.format, from, image.width, to);
    }
  }
  return copy;
}

// Returns the greatest finite distance. Distances that are no number become
// infinite.
double FarthestOf(std::vector<float>* metres) {
  double farthest = 0;
  for (float& distance : *metres) {
    if (std::isnan(distance)) distance = std::numeric_limits<float>::infinity();
    if (std::isfinite(distance)) {
      farthest = std::max(farthest, double{distance});
    }
  }
  return farthest > 0 ? farthest : 1;
}

absl::Status NoSuchDraw(uint64_t number) {
  return MakeError(
      ErrorCode::kNoStepPending,
      absl::StrCat("call: expected the number of an unanswered draw, found ",
                   number, "; it was answered, or is no longer wanted"));
}

}  // namespace

void ForeignDraws::Ask(tandem_draw draw, std::weak_ptr<const void> wanted,
                       Done done) {
  draw.struct_size = sizeof(draw);
  uint64_t number = 0;
  DropUnwanted();
  {
    MutexLock lock(&mutex_);
    number = kDraw | ++last_;
    pending_.emplace(number, Pending{draw, std::move(wanted), std::move(done)});
  }
  give_(number, draw);
}

void ForeignDraws::DropUnwanted() {
  MutexLock lock(&mutex_);
  std::erase_if(pending_,
                [](const auto& each) { return each.second.wanted.expired(); });
}

bool ForeignDraws::Has(uint64_t number) const {
  MutexLock lock(&mutex_);
  const auto found = pending_.find(number);
  return found != pending_.end() && !found->second.wanted.expired();
}

absl::StatusOr<ForeignDraws::Pending> ForeignDraws::Take(
    uint64_t number, const tandem_image* image) {
  MutexLock lock(&mutex_);
  const auto found = pending_.find(number);
  if (found == pending_.end()) return NoSuchDraw(number);
  if (image != nullptr) {
    TANDEM_RETURN_IF_ERROR(CheckImage(*image, found->second.draw));
  }
  Pending taken = std::move(found->second);
  pending_.erase(found);
  if (taken.wanted.expired()) return NoSuchDraw(number);
  return taken;
}

absl::Status ForeignDraws::Drawn(uint64_t number, const tandem_image& image) {
  TANDEM_ASSIGN_OR_RETURN(const Pending taken, Take(number, &image));
  taken.done(CopyOf(image));
  return absl::OkStatus();
}

absl::Status ForeignDraws::Refuse(uint64_t number, absl::Status error) {
  TANDEM_ASSIGN_OR_RETURN(const Pending taken, Take(number, nullptr));
  taken.done(std::move(error));
  return absl::OkStatus();
}

absl::Status ForeignFrames::Prepare(const FrameOptions& options) {
  options_ = options;
  MutexLock lock(&mutex_);
  slots_.resize(options.envs.size());
  return absl::OkStatus();
}

void ForeignFrames::Capture(uint32_t place) {
  const auto wanted = std::make_shared<const char>();
  {
    MutexLock lock(&mutex_);
    slots_[place] = {.wanted = wanted,
                     .until = Deadline::After(kPatienceSecs),
                     .drawn = std::nullopt};
  }
  tandem_draw draw = {};
  draw.purpose = TANDEM_DRAW_FRAME;
  draw.env = options_.envs[place];
  draw.width = options_.width;
  draw.height = options_.height;
  draw.patience_secs = kPatienceSecs;
  // `wanted` says whether the slot still waits for this image.
  draws_->Ask(
      draw, wanted,
      [this, place, key = wanted.get()](absl::StatusOr<DrawnImage> image) {
        MutexLock lock(&mutex_);
        Slot& slot = slots_[place];
        if (slot.wanted.get() != key) return;
        slot.drawn = std::move(image);
        news_.SignalAll();
      });
}

absl::Status ForeignFrames::Draw(uint32_t place, const FrameTile& tile) {
  absl::StatusOr<DrawnImage> image = MakeError(
      ErrorCode::kEngineFailed,
      absl::StrCat("frames: the engine has not drawn environment ",
                   options_.envs[place], " within ", kPatienceSecs, " s"));
  {
    MutexLock lock(&mutex_);
    Slot& slot = slots_[place];
    while (!slot.drawn && !closed_ && !slot.until.PassedAt(MonotonicNanos())) {
      news_.WaitUntil(&mutex_, slot.until);
    }
    if (slot.drawn) image = *std::move(slot.drawn);
    slot.drawn.reset();
    slot.wanted.reset();
  }
  if (!image.ok()) return image.status();
  for (size_t y = 0; y < tile.rows; ++y) {
    std::memcpy(tile.first + y * tile.stride,
                image->rgb.data() + y * tile.row_bytes, tile.row_bytes);
  }
  return absl::OkStatus();
}

void ForeignFrames::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  news_.SignalAll();
}

absl::Status ForeignCamera::Draw(const ImageRequest& request,
                                 std::weak_ptr<const void> wanted, Done done) {
  ImageRequest sized = request;
  if (sized.width == 0) sized.width = size_.width;
  if (sized.height == 0) sized.height = size_.height;
  draws_->DropUnwanted();  // they hold shares of the queue's limits
  std::shared_ptr<const void> held;
  {
    MutexLock lock(&mutex_);
    TANDEM_ASSIGN_OR_RETURN(held, queue_.Admit(sized));
  }
  tandem_draw draw = {};
  draw.purpose = sized.of_viewport ? TANDEM_DRAW_VIEWPORT : TANDEM_DRAW_CAMERA;
  draw.env = sized.env;
  draw.camera = sized.index;
  draw.width = sized.width;
  draw.height = sized.height;
  draw.depth = sized.depth ? 1 : 0;
  draws_->Ask(
      draw, wanted,
      [this, sized, wanted, held = std::move(held),
       done = std::move(done)](absl::StatusOr<DrawnImage> image) mutable {
        if (!image.ok()) return done(image.status());
        // The queue's thread encodes it.
        const auto drawn = std::make_shared<DrawnImage>(*std::move(image));
        MutexLock lock(&mutex_);
        queue_.Add({.held = std::move(held),
                    .wanted = std::move(wanted),
                    .render = [sized, drawn]() -> absl::StatusOr<Image> {
                      if (!sized.depth) {
                        return EncodeImage(std::move(drawn->rgb), sized.width,
                                           sized.height, sized.format);
                      }
                      return EncodeDepth(drawn->metres, sized.width,
                                         sized.height,
                                         FarthestOf(&drawn->metres));
                    },
                    .done = std::move(done)});
      });
  return absl::OkStatus();
}

}  // namespace tandem
