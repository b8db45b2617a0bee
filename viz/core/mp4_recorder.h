// Mp4Recorder: writes a run's frames into an mp4 file, by a program ffmpeg of
// the machine.
//
// Data flow: frames with their times -> a queue of at most kMostWaitingBytes ->
// the recorder's thread -> a socket -> ffmpeg -> the file. In a full queue the
// newest frame replaces the one before it: a slow ffmpeg loses frames, the
// caller never waits for it, and the video's times stay right.
// Ownership: one view; Add and status from one thread.
//
// The file consists of fragments: it can be played up to the last complete
// second if ffmpeg is killed or the disk is full.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/os/unique_fd.h"
#include "transport/frame_reader.h"
#include "viz/core/background.h"

namespace tandem {

// Returns the path of ffmpeg: the variable IMAGEIO_FFMPEG_EXE, or else the
// first `ffmpeg` of PATH. Error: kUnsupported, with the packages that have it.
absl::StatusOr<std::string> FindFfmpeg();

// States: waiting for the first frame, recording, ended.
class Mp4Recorder {
 public:
  // A second of 640x480 at 30/s: more than ffmpeg needs to start.
  static constexpr size_t kMostWaitingBytes = size_t{32} << 20;
  // For an ffmpeg that reads nothing, and for the whole end. Alone, ffmpeg
  // starts and encodes a few frames in 0.2 s; beside busy processes, in more
  // than 5 s.
  static constexpr double kPatienceSecs = 30;

  // Checks that ffmpeg exists, and that `path` can be created; it must not
  // exist yet. ffmpeg starts with the first frame. Errors: FindFfmpeg's, and
  // the system's for the path.
  static absl::StatusOr<std::unique_ptr<Mp4Recorder>> Start(
      const std::string& path);
  Mp4Recorder(const Mp4Recorder&) = delete;
  Mp4Recorder& operator=(const Mp4Recorder&) = delete;
  // As Finish, without its result.
  ~Mp4Recorder();

  // Adds a frame, shown from `now_ns` on. Times of less than 1 ms after the
  // frame before count as 1 ms after it. Copies the frame; does not wait. No
  // effect after the end.
  void Add(const Frame& frame, int64_t now_ns);

  // OK while it records. Otherwise the reason of its end: ffmpeg's text, such
  // as that of a full disk, or frames of another size.
  absl::Status status() const;

  // Begins the end: ffmpeg gets the last frames, and is killed if it has not
  // ended after this time. A stopped ffmpeg is continued. Does not wait. A
  // second call may shorten the time.
  void BeginFinish(double secs = kPatienceSecs);

  // As BeginFinish, and blocks until ffmpeg has ended. Returns the reason if
  // the recording is incomplete. A second call returns the same.
  absl::Status Finish();

  const std::string& path() const { return path_; }
  uint64_t frames() const;   // passed to ffmpeg
  uint64_t dropped() const;  // replaced by newer ones

 private:
  Mp4Recorder(std::string path, std::string ffmpeg)
      : path_(std::move(path)), ffmpeg_(std::move(ffmpeg)) {}

  struct Waiting {
    uint64_t time_ms = 0;  // since the first frame
    std::vector<std::byte> pixels;
  };

  absl::Status Spawn(const Frame& frame);
  void Run();
  absl::Status SendFrame(const Waiting& frame);
  absl::Status Send(const void* data, size_t bytes);
  absl::Status Ended();
  // Once the end has begun, continues ffmpeg, or kills it and returns false.
  bool PressOn();

  const std::string path_;
  const std::string ffmpeg_;
  uint32_t width_ = 0;  // of the first frame
  uint32_t height_ = 0;
  uint32_t channels_ = 0;
  int64_t first_ns_ = 0;
  std::optional<uint64_t> last_ms_;  // of the frame before
  pid_t pid_ = -1;
  UniqueFd input_;   // ffmpeg's standard input
  UniqueFd errors_;  // a file with ffmpeg's standard error
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar work_;  // waiting_ or finishing_
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  Deadline end_ ABSL_GUARDED_BY(mutex_) = Deadline::Infinite();
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t frames_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Ends recordings, each on a thread of its own. The destructor gives all of
// them kLastSecs together: the program ends. One thread calls it.
class RecordingEnds {
 public:
  static constexpr double kLastSecs = 5;

  RecordingEnds() = default;
  RecordingEnds(const RecordingEnds&) = delete;
  RecordingEnds& operator=(const RecordingEnds&) = delete;
  ~RecordingEnds();

  // Finishes, without waiting. The result names the file; `done` as in
  // StartAction.
  std::shared_ptr<Pending> Add(
      std::unique_ptr<Mp4Recorder> recorder,
      std::function<void(const absl::Status& status)> done = {});

 private:
  struct End {
    std::shared_ptr<Mp4Recorder> recorder;
    std::shared_ptr<Pending> result;
    WorkThread thread;
  };
  std::list<End> ends_;
};

}  // namespace tandem
