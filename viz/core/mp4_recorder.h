// Mp4Recorder: writes a run's frames into an mp4 file, by a program ffmpeg of
// the machine.
//
// Data flow: frames -> a mailbox for one frame -> the recorder's thread -> a
// socket -> ffmpeg -> the file. A newer frame replaces a waiting one, so a slow
// ffmpeg loses frames, and the caller never waits for it.
// Ownership: one view; Add and status from one thread.
//
//   absl::StatusOr<std::unique_ptr<Mp4Recorder>> recorder =
//       Mp4Recorder::Start("run.mp4");
//   (*recorder)->Add(frame);
//   absl::Status saved = (*recorder)->Finish();
//
// The file consists of fragments: it can be played up to the last complete
// second if ffmpeg is killed or the disk is full.

#ifndef TANDEM_VIZ_CORE_MP4_RECORDER_H_
#define TANDEM_VIZ_CORE_MP4_RECORDER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "transport/base/unique_fd.h"
#include "transport/frames/frame_reader.h"

namespace tandem {

// Returns the path of ffmpeg: the variable IMAGEIO_FFMPEG_EXE, or else the
// first `ffmpeg` of PATH. Error: kUnsupported, with the packages that have it.
absl::StatusOr<std::string> FindFfmpeg();

// States: waiting for the first frame, recording, ended.
class Mp4Recorder {
 public:
  // Checks that ffmpeg exists, and that `path` can be created; it must not
  // exist yet. ffmpeg starts with the first frame. Errors: FindFfmpeg's, and
  // the system's for the path.
  static absl::StatusOr<std::unique_ptr<Mp4Recorder>> Start(
      const std::string& path);
  Mp4Recorder(const Mp4Recorder&) = delete;
  Mp4Recorder& operator=(const Mp4Recorder&) = delete;
  // As Finish, without its result.
  ~Mp4Recorder();

  // Adds a frame at the current time. Copies it; does not wait. No effect after
  // the end.
  void Add(const Frame& frame);

  // OK while it records. Otherwise the reason of its end: ffmpeg's text, such
  // as that of a full disk, or frames of another size.
  absl::Status status() const;

  // Writes the last frame and ends ffmpeg. Blocks until ffmpeg has ended; an
  // ffmpeg that does not read or end for 5 s is killed. Returns the reason if
  // the recording is incomplete. A second call returns the same.
  absl::Status Finish();

  const std::string& path() const { return path_; }
  uint64_t frames() const;   // passed to ffmpeg
  uint64_t dropped() const;  // replaced by newer ones before

 private:
  Mp4Recorder(std::string path, std::string ffmpeg)
      : path_(std::move(path)), ffmpeg_(std::move(ffmpeg)) {}

  absl::Status Spawn(const Frame& frame);
  void Run();
  absl::Status Send(const std::vector<std::byte>& pixels);
  absl::Status Ended() const;
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return has_frame_ || finishing_;
  }

  const std::string path_;
  const std::string ffmpeg_;
  uint32_t width_ = 0;  // of the first frame
  uint32_t height_ = 0;
  uint32_t channels_ = 0;
  pid_t pid_ = -1;
  UniqueFd input_;   // ffmpeg's standard input
  UniqueFd errors_;  // a file with ffmpeg's standard error
  std::thread thread_;

  mutable absl::Mutex mutex_;
  std::vector<std::byte> waiting_ ABSL_GUARDED_BY(mutex_);
  bool has_frame_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t frames_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_MP4_RECORDER_H_
