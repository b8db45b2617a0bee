#include "viz/core/mp4_recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

constexpr size_t kMaxErrorBytes = 400;
constexpr int kPatienceSecs = 5;  // for each part of a frame, and for the end

absl::Status Incomplete(const std::string& path, absl::string_view found) {
  return MakeError(ErrorCode::kSystemCallFailed,
                   absl::StrCat("recording: expected ffmpeg to write all "
                                "frames, found ",
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
  std::vector<std::string> candidates;
  if (const char* given = std::getenv("IMAGEIO_FFMPEG_EXE")) {
    candidates.emplace_back(given);
  }
  if (const char* path = std::getenv("PATH")) {
    for (const absl::string_view folder : absl::StrSplit(path, ':')) {
      candidates.push_back(absl::StrCat(folder, "/ffmpeg"));
    }
  }
  for (const std::string& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return MakeError(
      ErrorCode::kUnsupported,
      "recording: expected the program ffmpeg, found neither the variable "
      "IMAGEIO_FFMPEG_EXE nor ffmpeg in PATH; install Debian's package ffmpeg, "
      "or pip's imageio-ffmpeg, whose program "
      "imageio_ffmpeg.get_ffmpeg_exe() names");
}

absl::StatusOr<std::unique_ptr<Mp4Recorder>> Mp4Recorder::Start(
    const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(std::string ffmpeg, FindFfmpeg());
  const UniqueFd file(
      open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  return std::unique_ptr<Mp4Recorder>(new Mp4Recorder(path, std::move(ffmpeg)));
}

Mp4Recorder::~Mp4Recorder() { (void)Finish(); }

void Mp4Recorder::Add(const Frame& frame) {
  if (pid_ < 0) {
    if (!status().ok()) return;
    const absl::Status started = Spawn(frame);
    absl::MutexLock lock(&mutex_);
    status_ = started;
    if (!started.ok()) return;
  }
  absl::MutexLock lock(&mutex_);
  if (!status_.ok() || finishing_) return;
  if (frame.width != width_ || frame.height != height_ ||
      frame.channels != channels_) {
    status_ = Incomplete(
        path_, absl::StrCat("frames of another size, ", frame.width, "x",
                            frame.height, " after ", width_, "x", height_));
    finishing_ = true;
    return;
  }
  if (has_frame_) ++dropped_;
  waiting_ = frame.pixels;
  has_frame_ = true;
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
  // A stopped ffmpeg counts as ended.
  const timeval patience = {.tv_sec = kPatienceSecs, .tv_usec = 0};
  setsockopt(input_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience,
             sizeof(patience));
  errors_ = UniqueFd(memfd_create("ffmpeg's errors", MFD_CLOEXEC));
  if (!errors_.valid()) {
    return MakeSystemError("memfd_create", "ffmpeg's errors", errno);
  }
  // Frames come at any rate up to 60/s: their times are those of their arrival.
  // x264 needs even sides. Fragments: see the header.
  std::vector<std::string> words = {
      ffmpeg_,
      "-hide_banner",
      "-nostats",
      "-loglevel",
      "error",
      "-y",
      "-use_wallclock_as_timestamps",
      "1",
      "-f",
      "rawvideo",
      "-framerate",
      "60",
      "-pixel_format",
      channels_ == 4 ? "rgba" : "rgb24",
      "-video_size",
      absl::StrCat(width_, "x", height_),
      "-i",
      "pipe:0",
      "-vf",
      "pad=ceil(iw/2)*2:ceil(ih/2)*2",
      "-vsync",
      "vfr",
      "-c:v",
      "libx264",
      "-preset",
      "veryfast",
      "-pix_fmt",
      "yuv420p",
      "-force_key_frames",
      "expr:gte(t,n_forced)",
      "-movflags",
      "+frag_keyframe+empty_moov+default_base_moof",
      "-f",
      "mp4",
      path_};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup free_actions = [&] {
    posix_spawn_file_actions_destroy(&actions);
  };
  posix_spawn_file_actions_adddup2(&actions, its_input.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors_.get(), STDERR_FILENO);
  // A process group of its own: Ctrl-C ends this program, which then ends
  // ffmpeg by its input. No signal stays blocked.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup free_attributes = [&] {
    posix_spawnattr_destroy(&attributes);
  };
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, ffmpeg_.c_str(), &actions, &attributes,
                                arguments.data(), environ);
  if (error != 0) return MakeSystemError("posix_spawn", ffmpeg_, error);
  pid_ = pid;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Mp4Recorder::Run() {
  std::vector<std::byte> pixels;
  absl::Status sent;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Mp4Recorder::HasWork));
      if (!has_frame_) break;
      std::swap(pixels, waiting_);
      has_frame_ = false;
    }
    sent = Send(pixels);
    absl::MutexLock lock(&mutex_);
    if (!sent.ok()) break;
    ++frames_;
  }
  input_.reset();  // the end of ffmpeg's input
  // ffmpeg's own text has the reason, so it precedes the error of `send`.
  absl::Status ended = Ended();
  ended.Update(sent);
  absl::MutexLock lock(&mutex_);
  status_.Update(ended);
  finishing_ = true;
}

absl::Status Mp4Recorder::Send(const std::vector<std::byte>& pixels) {
  size_t sent = 0;
  while (sent < pixels.size()) {
    // MSG_NOSIGNAL: an ended ffmpeg is an error, not a signal.
    const ssize_t bytes = send(input_.get(), pixels.data() + sent,
                               pixels.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      return Incomplete(path_, errno == EAGAIN ? "that it has stopped reading"
                                               : "that it has ended");
    }
    sent += static_cast<size_t>(bytes);
  }
  return absl::OkStatus();
}

absl::Status Mp4Recorder::Ended() const {
  const Deadline deadline = Deadline::After(kPatienceSecs);
  int how = 0;
  pid_t done = 0;
  while ((done = waitpid(pid_, &how, WNOHANG)) == 0) {
    if (deadline.PassedAt(MonotonicNanos())) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &how, 0);
      break;
    }
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

absl::Status Mp4Recorder::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    finishing_ = true;
  }
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mutex_);
  if (!finished_ && pid_ < 0) {
    // No frame came: an empty file is no recording.
    unlink(path_.c_str());
    status_.Update(MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("recording: expected at least one frame, found none; no "
                     "file was made: ",
                     path_)));
  }
  finished_ = true;
  return status_;
}

absl::Status Mp4Recorder::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

uint64_t Mp4Recorder::frames() const {
  absl::MutexLock lock(&mutex_);
  return frames_;
}

uint64_t Mp4Recorder::dropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

}  // namespace tandem
