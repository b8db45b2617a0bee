#include "viz/core/mp4_recorder.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "transport/frame_reader.h"
#include "viz/core/background.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
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

// A time of the recorder's clock.
int64_t AtMs(int64_t ms) { return 1'000'000'000 + ms * 1'000'000; }

std::string NewPath(absl::string_view name) {
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", name, ".mp4");
}

// Adds `count` frames, 20 ms apart.
void Record(Mp4Recorder* recorder, int count, uint32_t channels = 3) {
  for (int i = 0; i < count; ++i) {
    recorder->Add(GreyFrame(10 + 20 * i, channels), AtMs(20 * i));
  }
}

std::string OutputOf(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  for (int byte = 0; (byte = std::fgetc(pipe)) != EOF;) {
    output.push_back(static_cast<char>(byte));
  }
  pclose(pipe);
  return output;
}

// Returns the time of each frame of a file, in ms since the first.
std::vector<int64_t> TimesOf(const std::string& path) {
  const std::string lines = OutputOf(absl::StrCat(
      *FindFfmpeg(), " -loglevel error -i ", path,
      " -fps_mode passthrough -enc_time_base 1:1000 -f framecrc -"));
  std::vector<int64_t> times;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    int64_t time = 0;  // stream, dts, pts, duration, size, checksum
    if (fields.size() > 2 && absl::SimpleAtoi(fields[2], &time)) {
      times.push_back(time);
    }
  }
  for (int64_t& time : times) {
    if (&time != times.data()) time -= times.front();
  }
  if (!times.empty()) times.front() = 0;
  return times;
}

// Returns the shade of each frame of a file, decoded by ffmpeg.
std::vector<int> ShadesOf(const std::string& path) {
  const std::string pixels = OutputOf(
      absl::StrCat(*FindFfmpeg(), " -loglevel error -i ", path,
                   " -fps_mode passthrough -enc_time_base 1:1000 -vf "
                   "format=gray,crop=1:1:4:4 -f rawvideo -pix_fmt gray -"));
  std::vector<int> shades;
  for (const char pixel : pixels) {
    shades.push_back(static_cast<unsigned char>(pixel));
  }
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

TEST(Mp4Recorder, RecordsEachFrameInOrder) {
  for (const uint32_t channels : {3U, 4U}) {
    const std::string path = NewPath(absl::StrCat("order", channels));
    auto recorder = Mp4Recorder::Start(path);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    Record(recorder->get(), 12, channels);
    ASSERT_TRUE((*recorder)->Finish().ok()) << (*recorder)->status();
    EXPECT_EQ((*recorder)->frames(), 12U);
    EXPECT_EQ((*recorder)->dropped(), 0U);
    const std::vector<int> shades = ShadesOf(path);
    ASSERT_EQ(shades.size(), 12U);
    for (int i = 0; i < 12; ++i) {
      EXPECT_NEAR(shades[static_cast<size_t>(i)], 10 + 20 * i, 4);
    }
  }
}

TEST(Mp4Recorder, FramesKeepTheirTimes) {
  const std::string path = NewPath("times");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  // Frames of one time follow each other by 1 ms, and no later frame moves.
  for (const int64_t ms : {0, 0, 16, 17, 17, 18, 500, 61'000, 61'033}) {
    (*recorder)->Add(GreyFrame(static_cast<int>(ms % 200)), AtMs(ms));
  }
  ASSERT_TRUE((*recorder)->Finish().ok()) << (*recorder)->status();
  EXPECT_THAT(TimesOf(path),
              ElementsAre(0, 1, 16, 17, 18, 19, 500, 61'000, 61'033));
}

TEST(Mp4Recorder, AnFfmpegThatDoesNotReadLosesFramesButNotTheNewest) {
  const std::string path = NewPath("slow");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  constexpr uint32_t kSide = 1000;
  Frame frame = GreyFrame(40);
  frame.width = kSide;
  frame.height = kSide;
  frame.pixels.assign(size_t{kSide} * kSide * 3, std::byte{40});
  (*recorder)->Add(frame, AtMs(0));
  const pid_t ffmpeg = FfmpegOf(getpid());
  ASSERT_GT(ffmpeg, 0);
  ASSERT_EQ(kill(ffmpeg, SIGSTOP), 0);
  int64_t added = 1;
  for (; (*recorder)->dropped() < 3; ++added) {
    (*recorder)->Add(frame, AtMs(added));
  }
  frame.pixels.assign(frame.pixels.size(), std::byte{200});
  (*recorder)->Add(frame, AtMs(9'000));
  ASSERT_EQ(kill(ffmpeg, SIGCONT), 0);
  ASSERT_TRUE((*recorder)->Finish().ok()) << (*recorder)->status();
  EXPECT_EQ((*recorder)->frames() + (*recorder)->dropped(),
            static_cast<uint64_t>(added + 1));
  const std::vector<int> shades = ShadesOf(path);
  EXPECT_EQ(shades.size(), (*recorder)->frames());
  EXPECT_NEAR(shades.back(), 200, 4);
  EXPECT_EQ(TimesOf(path).back(), 9'000);
}

TEST(Mp4Recorder, AStoppedFfmpegIsContinuedForItsEnd) {
  const std::string path = NewPath("stopped");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  (*recorder)->Add(GreyFrame(0), AtMs(0));
  const pid_t ffmpeg = FfmpegOf(getpid());
  ASSERT_GT(ffmpeg, 0);
  ASSERT_EQ(kill(ffmpeg, SIGSTOP), 0);
  for (int i = 1; i < 12; ++i) {
    (*recorder)->Add(GreyFrame(20 * i), AtMs(20 * i));
  }
  const absl::Status status = (*recorder)->Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(ShadesOf(path).size(), 12U);
}

// Starts a recording whose program reads nothing and does not end.
std::unique_ptr<Mp4Recorder> HungRecorder(absl::string_view name) {
  const std::string program =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-hangs");
  std::ofstream(program) << "#!/bin/sh\nexec sleep 100000\n";
  chmod(program.c_str(), 0700);
  setenv("IMAGEIO_FFMPEG_EXE", program.c_str(), 1);
  auto recorder = *Mp4Recorder::Start(NewPath(name));
  unsetenv("IMAGEIO_FFMPEG_EXE");
  recorder->Add(GreyFrame(0), AtMs(0));
  return recorder;
}

TEST(Mp4Recorder, AProgramThatDoesNotEndInTimeIsKilled) {
  const std::unique_ptr<Mp4Recorder> recorder = HungRecorder("hung");
  recorder->BeginFinish(0.2);
  const absl::Status status = recorder->Finish();
  EXPECT_EQ(CodeOf(status), ErrorCode::kSystemCallFailed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("signal 9"));
}

TEST(RecordingEnds, ARecordingDoesNotWaitForTheEndOfAnother) {
  const std::string path = NewPath("beside");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  Record(recorder->get(), 3);
  RecordingEnds ends;
  const std::shared_ptr<Pending> hung = ends.Add(HungRecorder("hangs"));
  const std::shared_ptr<Pending> saved = ends.Add(*std::move(recorder));
  while (!saved->Get().has_value() && !hung->Get().has_value()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(hung->Get().has_value());
  EXPECT_TRUE(saved->Get().has_value() && saved->Get()->ok());
  EXPECT_EQ(ShadesOf(path).size(), 3U);
}

TEST(Mp4Recorder, AKilledFfmpegIsReportedAndLeavesAFile) {
  const std::string path = NewPath("killed");
  auto recorder = Mp4Recorder::Start(path);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  (*recorder)->Add(GreyFrame(0), AtMs(0));
  const pid_t ffmpeg = FfmpegOf(getpid());
  ASSERT_GT(ffmpeg, 0);
  ASSERT_EQ(kill(ffmpeg, SIGKILL), 0);
  while ((*recorder)->status().ok()) {
    (*recorder)->Add(GreyFrame(0), AtMs(0));
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
  const Deadline deadline = Deadline::After(Mp4Recorder::kPatienceSecs);
  const auto await = [&](auto has_come) {
    while (!has_come() && !deadline.PassedAt(MonotonicNanos())) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return has_come();
  };
  ASSERT_TRUE(await([&] { return (*recorder)->frames() == 2; }));
  Frame other = GreyFrame(0);
  other.width = 10;
  (*recorder)->Add(other, AtMs(40));
  EXPECT_TRUE(await([] { return FfmpegOf(getpid()) <= 0; }));
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
