#include "viz/core/mp4_recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/os/posix/open_above_standard_streams.h"
#include "viz/core/matroska_stream.h"
#include "viz/core/program_start.h"

namespace tandem {
namespace {

constexpr size_t kMaxErrorBytes = 400;
constexpr uint64_t kNsPerMs = 1'000'000;
// The interval at which a wait for ffmpeg looks at its deadline.
constexpr int kLookMs = 50;

absl::Status Incomplete(const std::string& path, absl::string_view found) {
  return MakeError(
      ErrorCode::kSystemCallFailed,
      absl::StrCat("recording: expected ffmpeg to write all frames, found ",
                   found, "; the file ends early: ", path));
}

// The end of the text that ffmpeg has written to `file`, on one line.
std::string LastLines(int file) {
  const off_t end = lseek(file, 0, SEEK_END);
  std::string text(
      std::min<size_t>(kMaxErrorBytes,
                       static_cast<size_t>(std::max<off_t>(end, 0))),
      '\0');
  const ssize_t bytes = pread(file, text.data(), text.size(),
                              end - static_cast<off_t>(text.size()));
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  absl::StripAsciiWhitespace(&text);
  return text;
}

}  // namespace

absl::StatusOr<std::string> FindFfmpeg() {
  std::vector<std::string> given;
  if (const char* file = std::getenv("IMAGEIO_FFMPEG_EXE")) {
    given.emplace_back(file);
  }
  if (auto found = FirstExecutable(std::move(given), "ffmpeg")) return *found;
  return MakeError(ErrorCode::kUnsupported,
                   "recording: expected the program ffmpeg, found neither the "
                   "variable IMAGEIO_FFMPEG_EXE nor ffmpeg in PATH; install "
                   "Debian's package ffmpeg, or pip's imageio-ffmpeg, whose "
                   "program imageio_ffmpeg.get_ffmpeg_exe() names");
}

absl::StatusOr<std::unique_ptr<Mp4Recorder>> Mp4Recorder::Start(
    const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(std::string ffmpeg, FindFfmpeg());
  const UniqueFd file(OpenAboveStandardStreams(
      path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0666));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  return std::unique_ptr<Mp4Recorder>(new Mp4Recorder(path, std::move(ffmpeg)));
}

Mp4Recorder::~Mp4Recorder() { (void)Finish(); }

void Mp4Recorder::Add(const Frame& frame, int64_t now_ns) {
  if (pid_ < 0) {
    if (!status().ok()) return;
    const absl::Status started = Spawn(frame);
    MutexLock lock(&mutex_);
    status_ = started;
    if (!started.ok()) return;
    first_ns_ = now_ns;
  }
  MutexLock lock(&mutex_);
  if (!status_.ok() || finishing_) return;
  if (frame.width != width_ || frame.height != height_ ||
      frame.channels != channels_) {
    status_ = Incomplete(
        path_, absl::StrCat("frames of another size, ", frame.width, "x",
                            frame.height, " after ", width_, "x", height_));
    finishing_ = true;
    work_.Signal();
    return;
  }
  const auto since_first_ms =
      static_cast<uint64_t>(std::max<int64_t>(0, now_ns - first_ns_)) /
      kNsPerMs;
  const uint64_t time_ms = last_ms_.has_value()
                               ? std::max(*last_ms_ + 1, since_first_ms)
                               : since_first_ms;
  last_ms_ = time_ms;
  const size_t most = std::max<size_t>(
      1, kMostWaitingBytes / std::max<size_t>(1, frame.pixels.size()));
  if (waiting_.size() >= most) {
    ++dropped_;
    waiting_.pop_back();
  }
  waiting_.push_back({time_ms, frame.pixels});
  work_.Signal();
}

absl::Status Mp4Recorder::Spawn(const Frame& frame) {
  width_ = frame.width;
  height_ = frame.height;
  channels_ = frame.channels;
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return MakeSystemError("socketpair", "ffmpeg's input", errno);
  }
  input_ = UniqueFd(ends[0]);
  const UniqueFd its_input(ends[1]);
  const timeval look = {.tv_sec = 0, .tv_usec = kLookMs * 1000};
  setsockopt(input_.get(), SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look));
  errors_ = UniqueFd(memfd_create("ffmpeg's errors", MFD_CLOEXEC));
  if (!errors_.valid()) {
    return MakeSystemError("memfd_create", "ffmpeg's errors", errno);
  }
  // Frames come at any rate: each keeps its time, in milliseconds. x264 needs
  // even sides. Fragments: see the header.
  std::vector<std::string> words = absl::StrSplit(
      "-hide_banner -nostats -loglevel error -y -f matroska -i pipe:0 "
      "-vf pad=ceil(iw/2)*2:ceil(ih/2)*2 -fps_mode passthrough "
      "-enc_time_base 1:1000 -c:v libx264 -preset veryfast -pix_fmt yuv420p "
      "-force_key_frames expr:gte(t,n_forced) "
      "-movflags +frag_keyframe+empty_moov+default_base_moof -f mp4",
      ' ');
  words.insert(words.begin(), ffmpeg_);
  words.push_back(path_);
  const UniqueFd null(OpenAboveStandardStreams("/dev/null", O_WRONLY));
  TANDEM_ASSIGN_OR_RETURN(
      pid_, StartProgram(std::move(words), {.input = its_input.get(),
                                            .output = null.get(),
                                            .errors = errors_.get()}));
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Mp4Recorder::Run() {
  const std::string head =
      matroska_stream::StreamHead(width_, height_, channels_);
  absl::Status sent = Send(head.data(), head.size());
  while (sent.ok()) {
    Waiting frame;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !finishing_) work_.Wait(&mutex_);
      if (waiting_.empty()) break;
      frame = std::move(waiting_.front());
      waiting_.pop_front();
    }
    sent = SendFrame(frame);
    if (!sent.ok()) break;
    MutexLock lock(&mutex_);
    ++frames_;
  }
  input_.reset();  // the end of ffmpeg's input
  // ffmpeg's own text has the reason, so it precedes the error of `send`.
  absl::Status ended = Ended();
  ended.Update(sent);
  MutexLock lock(&mutex_);
  status_.Update(ended);
  finishing_ = true;
  waiting_.clear();
}

absl::Status Mp4Recorder::SendFrame(const Waiting& frame) {
  const std::string head =
      matroska_stream::FrameHead(frame.time_ms, frame.pixels.size());
  TANDEM_RETURN_IF_ERROR(Send(head.data(), head.size()));
  return Send(frame.pixels.data(), frame.pixels.size());
}

absl::Status Mp4Recorder::Send(const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  Deadline reads = Deadline::After(kPatienceSecs);
  while (bytes > 0) {
    // MSG_NOSIGNAL: an ended ffmpeg is an error, not a signal.
    const ssize_t sent = send(input_.get(), at, bytes, MSG_NOSIGNAL);
    if (sent >= 0) {
      at += sent;
      bytes -= static_cast<size_t>(sent);
      reads = Deadline::After(kPatienceSecs);
    } else if (errno != EAGAIN && errno != EINTR) {
      return Incomplete(path_, "that it has ended");
    } else if (reads.PassedAt(MonotonicNanos())) {
      BeginFinish(0);
    }
    if (bytes > 0 && !PressOn()) {
      return Incomplete(path_, "that it has stopped reading");
    }
  }
  return absl::OkStatus();
}

bool Mp4Recorder::PressOn() {
  MutexLock lock(&mutex_);
  const bool has_time = !end_.PassedAt(MonotonicNanos());
  if (finishing_) kill(pid_, has_time ? SIGCONT : SIGKILL);
  return has_time;
}

absl::Status Mp4Recorder::Ended() {
  BeginFinish();
  int how = 0;
  while (waitpid(pid_, &how, WNOHANG) == 0) {
    PressOn();
    poll(nullptr, 0, 10);
  }
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return absl::OkStatus();
  const std::string text = LastLines(errors_.get());
  return Incomplete(
      path_, !text.empty() ? text
             : WIFSIGNALED(how)
                 ? absl::StrCat("that signal ", WTERMSIG(how), " ended it")
                 : absl::StrCat("exit code ", WEXITSTATUS(how)));
}

void Mp4Recorder::BeginFinish(double secs) {
  MutexLock lock(&mutex_);
  finishing_ = true;
  work_.Signal();
  const Deadline end = Deadline::After(secs);
  if (end.at_ns() < end_.at_ns()) end_ = end;
}

absl::Status Mp4Recorder::Finish() {
  BeginFinish();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(&mutex_);
  if (!finished_ && pid_ < 0) {
    // No frame came: an empty file is no recording.
    unlink(path_.c_str());
    status_.Update(
        MakeError(ErrorCode::kNotReady,
                  absl::StrCat("recording: expected at least one frame, found "
                               "none; no file was made: ",
                               path_)));
  }
  finished_ = true;
  return status_;
}

absl::Status Mp4Recorder::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

uint64_t Mp4Recorder::frames() const {
  MutexLock lock(&mutex_);
  return frames_;
}

uint64_t Mp4Recorder::dropped() const {
  MutexLock lock(&mutex_);
  return dropped_;
}

RecordingEnds::~RecordingEnds() {
  for (const End& end : ends_) end.recorder->BeginFinish(kLastSecs);
}

std::shared_ptr<Pending> RecordingEnds::Add(
    std::unique_ptr<Mp4Recorder> recorder,
    std::function<void(const absl::Status& status)> done) {
  ends_.remove_if([](const End& end) { return end.result->Get().has_value(); });
  End& end = ends_.emplace_back();
  end.recorder = std::move(recorder);
  end.result = StartAction(
      &end.thread,
      [shared = end.recorder]() -> absl::StatusOr<std::string> {
        TANDEM_RETURN_IF_ERROR(shared->Finish());
        return absl::StrCat("Saved ", shared->path());
      },
      std::move(done));
  return end.result;
}

}  // namespace tandem
