// RunFeed: one run for all browsers that show it.
//
// Data flow: FrameWatch -> the newest frame, encoded once for each quality; and
// the tape of the last 60 s. SceneWatch -> the scene, for views in 3D.
// Ownership: the views of all browsers share it; the server's one thread. With
// the last view of its pictures it detaches, and the run's engine stops
// rendering.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "viz/core/background.h"
#include "viz/core/frame_tape.h"
#include "viz/core/frame_watch.h"
#include "viz/core/mp4_recorder.h"
#include "viz/core/picture.h"
#include "viz/core/scene_watch.h"
#include "viz/web/picture_pace.h"

namespace tandem {

class RunFeed {
 public:
  explicit RunFeed(const std::string& run) : run_(run), watch_(run) {}

  // Polls the scene, if there is one; and as FrameWatch::Poll, if the pictures
  // are watched or recorded; also records the tape, and the recording.
  bool Poll(int64_t now_ns);

  // The pictures are polled as long as the caller has the result.
  std::shared_ptr<void> WatchPictures();
  // Returns the run's scene, the same for all; `thread` as SceneWatch's.
  std::shared_ptr<SceneWatch> Scene(WorkThread* thread);
  // nullptr: no view has it.
  std::shared_ptr<SceneWatch> scene() const { return scene_.lock(); }

  // Records into a new file. Errors: those of Mp4Recorder::Start, and
  // kInvalidArgument: it records already.
  absl::Status StartRecording(const std::string& path);
  // nullptr: it does not record.
  const Mp4Recorder* recorder() const { return recorder_.get(); }
  // Ends the recording; the caller calls Finish, which blocks.
  std::unique_ptr<Mp4Recorder> TakeRecorder() { return std::move(recorder_); }

  // Returns the newest frame; nullptr: none, or libjpeg refuses it. At least
  // `wanted_width` pixels wide before the quality's divisor, if the frame is.
  std::shared_ptr<const Picture> Encode(const PictureQuality& quality,
                                        uint32_t wanted_width);

  // The reason why the last recording has ended early; "": none.
  void SetError(std::string error) { error_ = std::move(error); }
  const std::string& error() const { return error_; }

  // As Encode, as PNG, with all pixels up to kMaxPicturePixels.
  std::shared_ptr<const Picture> EncodeLossless() const;

  const std::string& run() const { return run_; }
  const FrameWatch& watch() const { return watch_; }
  const FrameTape& tape() const { return tape_; }
  void ShareTapeWith(size_t feeds);

 private:
  const std::string run_;
  FrameWatch watch_;
  FrameTape tape_;
  std::weak_ptr<void> pictures_;
  std::weak_ptr<SceneWatch> scene_;
  std::unique_ptr<Mp4Recorder> recorder_;
  std::string error_;
  // Of the newest frame, by divisor and quality.
  std::map<std::pair<uint32_t, int>, std::shared_ptr<const Picture>> encoded_;
};

}  // namespace tandem
