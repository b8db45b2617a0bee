#include "viz/core/mp4_recorder.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "transport/base/error.h"
#include "transport/frames/frame_reader.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kWidth = 33;  // odd: x264 refuses odd sides
constexpr uint32_t kHeight = 25;

// An image of one colour, a shade of grey.
Frame GreyFrame(int shade, uint32_t channels = 3) {
  Frame frame;
  frame.width = kWidth;
  frame.height = kHeight;
  frame.channels = channels;
  frame.pixels.assign(size_t{kWidth} * kHeight * channels,
                      static_cast<std::byte>(shade));
  return frame;
}

std::string NewPath(absl::string_view name) {
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", name, ".mp4");
}

// Adds frames until ffmpeg has got `count`.
void Record(Mp4Recorder* recorder, int count, uint32_t channels = 3) {
  for (int i = 0; i < count; ++i) {
    const uint64_t before = recorder->frames();
    recorder->Add(GreyFrame(10 + 20 * i, channels));
    while (recorder->frames() == before && recorder->status().ok()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    absl::SleepFor(absl::Milliseconds(20));  // a video's frames have times
  }
}

// Returns the shade of each frame of a file, decoded by ffmpeg.
std::vector<int> ShadesOf(const std::string& path) {
  const std::string command =
      absl::StrCat(*FindFfmpeg(), " -loglevel error -i ", path,
                   " -vsync passthrough -vf format=gray,crop=1:1:4:4 "
                   "-f rawvideo -pix_fmt gray -");
  FILE* const pipe = popen(command.c_str(), "r");
  std::vector<int> shades;
  for (int byte = 0; (byte = std::fgetc(pipe)) != EOF;) shades.push_back(byte);
  pclose(pipe);
  return shades;
}

// Returns the pid of this process's child ffmpeg.
pid_t FfmpegOf(pid_t parent) {
  std::ifstream children(
      absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  pid_t child = -1;
  children >> child;
  return child;
}

// ffmpeg gives a frame the time at which it reads it, and drops frames of one
// time: those that came before it had started.
TEST(Mp4Recorder, RecordsFramesInOrderUpToTheLast) {
  for (const uint32_t channels : {3U, 4U}) {
    const std::string path = NewPath(absl::StrCat("order", channels));
    auto recorder = Mp4Recorder::Start(path);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    Record(recorder->get(), 12, channels);
    ASSERT_TRUE((*recorder)->Finish().ok()) << (*recorder)->status();
    EXPECT_EQ((*recorder)->frames(), 12U);
    const std::vector<int> shades = ShadesOf(path);
    ASSERT_FALSE(shades.empty());
    EXPECT_LE(shades.size(), 12U);
    EXPECT_NEAR(shades.back(), 10 + 20 * 11, 4);
    for (size_t i = 1; i < shades.size(); ++i) {
      EXPECT_GT(shades[i], shades[i - 1] + 10);  // each once, in order
    }
  }
}

TEST(Mp4Recorder, AKilledFfmpegIsReportedAndLeavesAFile) {
  const std::string path = NewPath("killed");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  (*recorder)->Add(GreyFrame(0));
  const pid_t ffmpeg = FfmpegOf(getpid());
  ASSERT_GT(ffmpeg, 0);
  ASSERT_EQ(kill(ffmpeg, SIGKILL), 0);
  while ((*recorder)->status().ok()) {
    (*recorder)->Add(GreyFrame(0));
    absl::SleepFor(absl::Milliseconds(1));
  }
  const absl::Status status = (*recorder)->Finish();
  EXPECT_EQ(CodeOf(status), ErrorCode::kSystemCallFailed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("signal 9"));
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST(Mp4Recorder, FramesOfAnotherSizeEndTheRecording) {
  const std::string path = NewPath("size");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  Record(recorder->get(), 2);
  Frame other = GreyFrame(0);
  other.width = 10;
  (*recorder)->Add(other);
  EXPECT_THAT(std::string((*recorder)->Finish().message()),
              HasSubstr("10x25 after 33x25"));
  EXPECT_FALSE(ShadesOf(path).empty());
}

TEST(Mp4Recorder, AFullDiskIsReportedWithFfmpegsText) {
  // Each write to /dev/full finds a full disk. O_EXCL refuses the device
  // itself, so ffmpeg gets a name for it after the check.
  const std::string path = NewPath("full");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(symlink("/dev/full", path.c_str()), 0);
  Record(recorder->get(), 3);
  const absl::Status status = (*recorder)->Finish();
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left"));
}

TEST(Mp4Recorder, RefusesAFileThatExists) {
  const std::string path = NewPath("exists");
  ASSERT_TRUE(std::ofstream(path) << "mine");
  EXPECT_FALSE(Mp4Recorder::Start(path).ok());
}

TEST(Mp4Recorder, ARecordingWithoutFramesLeavesNoFile) {
  const std::string path = NewPath("empty");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  EXPECT_EQ(CodeOf((*recorder)->Finish()), ErrorCode::kNotReady);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Mp4Recorder, NamesThePackagesIfThereIsNoFfmpeg) {
  const std::string path_before = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  unsetenv("IMAGEIO_FFMPEG_EXE");
  const absl::Status status = Mp4Recorder::Start(NewPath("none")).status();
  setenv("PATH", path_before.c_str(), 1);
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  EXPECT_THAT(std::string(status.message()), HasSubstr("imageio-ffmpeg"));
}

}  // namespace
}  // namespace tandem
