// ForeignDraws: images that the program draws. ForeignFrames, ForeignCamera:
// the frames and the requested images of its engine.
//
// Data flow: FrameThread or a service -> Ask -> a DRAW for the program ->
// tandem_engine_drawn -> Drawn -> the asker.
// Ownership: ForeignEngine owns all three. The stepping thread asks; any thread
// of the program answers.
//
//   ForeignDraws draws([&](uint64_t number, const tandem_draw& draw) { ... });
//   draws.Ask({.purpose = TANDEM_DRAW_FRAME, .env = 3, ...}, wanted, done);
//   absl::Status status = draws.Drawn(number, image);

#ifndef TANDEM_SDK_FOREIGN_DRAWS_H_
#define TANDEM_SDK_FOREIGN_DRAWS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/image_queue.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"

namespace tandem {

// An image of the program's: of one kind, the other is empty.
struct DrawnImage {
  std::vector<uint8_t> rgb;   // [height, width, 3], the top row first
  std::vector<float> metres;  // [height, width]
};

class ForeignDraws {
 public:
  // Gives a DRAW to the program; the stepping thread calls it.
  using Give = std::function<void(uint64_t number, const tandem_draw& draw)>;
  // Gets the image, or the program's error. Any thread may call it.
  using Done = std::function<void(absl::StatusOr<DrawnImage>)>;

  // Whether this number is of a draw; others are of calls.
  static bool IsDraw(uint64_t number) { return (number & kDraw) != 0; }

  // `give` may answer at once.
  explicit ForeignDraws(Give give) : give_(std::move(give)) {}

  // Asks for an image; `done` is called once, or never after `wanted` has
  // expired. `draw` needs no struct_size. The stepping thread calls it.
  void Ask(tandem_draw draw, std::weak_ptr<const void> wanted, Done done);

  // The rest may be called by any thread.

  // Whether the draw is unanswered and wanted.
  bool Has(uint64_t number) const;
  // Forgets the draws that no caller waits for now.
  void DropUnwanted();
  // kInvalidArgument: the image does not fit the draw, which stays unanswered.
  // kNoStepPending: there is no such draw.
  absl::Status Drawn(uint64_t number, const tandem_image& image);
  // kNoStepPending: as Drawn.
  absl::Status Refuse(uint64_t number, absl::Status error);

 private:
  static constexpr uint64_t kDraw = uint64_t{1} << 63;

  struct Pending {
    tandem_draw draw;
    std::weak_ptr<const void> wanted;
    Done done;
  };

  absl::StatusOr<Pending> Take(uint64_t number, const tandem_image* image);

  const Give give_;
  mutable Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

// Draw waits for the program's image for kPatienceSecs at most.
class ForeignFrames final : public FrameSource {
 public:
  static constexpr double kPatienceSecs = 1;

  explicit ForeignFrames(ForeignDraws* draws) : draws_(draws) {}

  absl::Status Prepare(const FrameOptions& options) override;
  void Capture(uint32_t place) override;
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Draw(uint32_t place, const FrameTile& tile) override;
  void Stop() override {}
  // Ends Draw's wait, now and later. Any thread.
  void Close();

 private:
  struct Slot {
    std::shared_ptr<const void> wanted;  // by the last Capture
    Deadline until = Deadline::Now();
    std::optional<absl::StatusOr<DrawnImage>> drawn;
  };

  ForeignDraws* draws_;
  FrameOptions options_;
  Mutex mutex_;
  CondVar news_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

class ForeignCamera final : public CameraPort {
 public:
  // Images whose caller names no size get this one.
  struct Size {
    uint32_t width = 320;
    uint32_t height = 240;
  };
  ForeignCamera(ForeignDraws* draws, std::vector<rpc::CameraInfoT> cameras,
                std::vector<std::string> viewports, Size size)
      : draws_(draws),
        cameras_(std::move(cameras)),
        viewports_(std::move(viewports)),
        size_(size) {}

  const std::vector<rpc::CameraInfoT>& Cameras() const override {
    return cameras_;
  }
  const std::vector<std::string>& Viewports() const override {
    return viewports_;
  }
  absl::Status Draw(const ImageRequest& request,
                    std::weak_ptr<const void> wanted, Done done) override;

 private:
  ForeignDraws* draws_;
  const std::vector<rpc::CameraInfoT> cameras_;
  const std::vector<std::string> viewports_;
  const Size size_;
  Mutex mutex_;  // several threads add
  ImageQueue queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SDK_FOREIGN_DRAWS_H_
