#include "engine_adapter/frames/image_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"
#include "engine_adapter/frame_source.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 3;
constexpr size_t kImageBytes = size_t{4} * 2 * 3;
const ImageOptions kSmall = {.width = 4, .height = 2};

// Fills each environment's image with its number of captures, plus 100 for each
// environment. It has no lock, so that ThreadSanitizer reports the two threads
// if they do not alternate.
class Painter final : public FrameSource {
 public:
  absl::Status Prepare(const FrameOptions& options) override {
    prepared = options;
    captures.resize(options.envs.size());
    return absl::OkStatus();
  }
  void Capture(uint32_t place) override {
    if (throw_at == place && throw_captures) throw Dry();
    ++captures[place];
  }
  absl::Status Start() override {
    thread = std::this_thread::get_id();
    return start;
  }
  absl::Status Draw(uint32_t place, const FrameTile& tile) override {
    EXPECT_EQ(std::this_thread::get_id(), thread);
    if (throw_at == place) throw Dry();
    if (fail_at == place) return MakeError(ErrorCode::kEngineFailed, "no ink");
    for (size_t row = 0; row < tile.rows; ++row) {
      for (size_t i = 0; i < tile.row_bytes; ++i) {
        tile.first[row * tile.stride + i] =
            static_cast<std::byte>(100 * place + captures[place]);
      }
    }
    return absl::OkStatus();
  }
  void Stop() override { ++stops; }

  FrameOptions prepared;
  std::vector<uint32_t> captures;
  absl::Status start;
  uint32_t fail_at = kEnvs;
  uint32_t throw_at = kEnvs;
  bool throw_captures = false;
  int stops = 0;
  std::thread::id thread;

 private:
  static std::runtime_error Dry() { return std::runtime_error("ink ran dry"); }
};

class ImageThreadTest : public testing::Test {
 protected:
  std::unique_ptr<ImageThread> Make() {
    absl::StatusOr<std::unique_ptr<ImageThread>> made =
        ImageThread::Create(&painter_, kSmall, kEnvs, images_);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  // Returns the value of all of an image's bytes; 255 if they differ.
  int ColourOf(uint32_t env) const {
    const uint8_t first = images_[env * kImageBytes];
    for (size_t i = 0; i < kImageBytes; ++i) {
      if (images_[env * kImageBytes + i] != first) return 255;
    }
    return first;
  }

  Painter painter_;
  std::vector<uint8_t> images_ = std::vector<uint8_t>(kEnvs * kImageBytes);
};

TEST_F(ImageThreadTest, AsksForEveryEnvironmentWithAllEffects) {
  const std::unique_ptr<ImageThread> thread = Make();
  EXPECT_EQ(painter_.prepared.envs, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(painter_.prepared.width, 4U);
  EXPECT_EQ(painter_.prepared.height, 2U);
  EXPECT_EQ(painter_.prepared.camera, FrameCamera::kFixed);
  EXPECT_TRUE(painter_.prepared.effects.shadows);
}

TEST_F(ImageThreadTest, EachImageIsDrawnWhenTheCallReturns) {
  const std::unique_ptr<ImageThread> thread = Make();
  for (int step = 1; step <= 50; ++step) {
    ASSERT_TRUE(thread->DrawAll().ok());
    EXPECT_EQ(ColourOf(0), step);
    EXPECT_EQ(ColourOf(2), 200 + step);
  }
}

TEST_F(ImageThreadTest, SomeAreDrawnIntoAnotherArray) {
  const std::unique_ptr<ImageThread> thread = Make();
  ASSERT_TRUE(thread->DrawAll().ok());
  std::vector<uint8_t> others(kEnvs * kImageBytes);
  const std::vector<uint32_t> envs = {2};
  ASSERT_TRUE(thread->DrawInto(envs, others).ok());
  EXPECT_EQ(others.front(), 0);
  EXPECT_EQ(others.back(), 202);
  EXPECT_EQ(ColourOf(2), 201);
  ASSERT_TRUE(thread->DrawAll().ok());
  EXPECT_EQ(ColourOf(2), 203);
  EXPECT_EQ(others.back(), 202);
}

TEST_F(ImageThreadTest, CamerasAreSideBySide) {
  ImageOptions options = kSmall;
  options.width = 2;
  options.cameras = {"hand", ""};
  const auto thread = ImageThread::Create(&painter_, options, kEnvs, images_);
  ASSERT_TRUE(thread.ok()) << thread.status();
  EXPECT_EQ(painter_.prepared.width, 2U);
  EXPECT_EQ(painter_.prepared.model_cameras,
            (std::vector<std::string>{"hand", ""}));
  ASSERT_TRUE((*thread)->DrawAll().ok());
  EXPECT_EQ(ColourOf(2), 201);  // all four columns are one tile
}

TEST_F(ImageThreadTest, StopsBetweenTwoImagesWhenTheEngineDoes) {
  std::atomic<int> asked{0};
  absl::StatusOr<std::unique_ptr<ImageThread>> thread = ImageThread::Create(
      &painter_, kSmall, kEnvs, images_, [&] { return ++asked > 1; });
  ASSERT_TRUE(thread.ok()) << thread.status();
  EXPECT_EQ(CodeOf((*thread)->DrawAll()), ErrorCode::kInterrupted);
  EXPECT_EQ(ColourOf(0), 1);
  EXPECT_EQ(ColourOf(1), 0);
}

TEST_F(ImageThreadTest, OnlyTheFlaggedAreDrawn) {
  const std::unique_ptr<ImageThread> thread = Make();
  ASSERT_TRUE(thread->DrawAll().ok());
  ASSERT_TRUE(thread->DrawFlagged(std::vector<uint8_t>{0, 3, 0}).ok());
  EXPECT_EQ(ColourOf(0), 1);
  EXPECT_EQ(ColourOf(1), 102);
  EXPECT_EQ(ColourOf(2), 201);
  ASSERT_TRUE(thread->DrawFlagged(std::vector<uint8_t>{0, 0, 0}).ok());
  EXPECT_EQ(painter_.captures, (std::vector<uint32_t>{1, 2, 1}));
}

TEST_F(ImageThreadTest, AfterAnErrorAllAreDrawn) {
  const std::unique_ptr<ImageThread> thread = Make();
  painter_.fail_at = 1;
  const absl::Status status = thread->DrawAll();
  EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(status.message(), "no ink")) << status;
  painter_.fail_at = kEnvs;
  ASSERT_TRUE(thread->DrawFlagged(std::vector<uint8_t>{1, 0, 0}).ok());
  EXPECT_EQ(ColourOf(1), 102);
  EXPECT_EQ(ColourOf(2), 202);
}

TEST_F(ImageThreadTest, ExceptionOfTheSourceIsAnError) {
  const std::unique_ptr<ImageThread> thread = Make();
  painter_.throw_at = 1;
  for (const bool captures : {false, true}) {
    painter_.throw_captures = captures;
    const absl::Status status = thread->DrawAll();
    EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
    EXPECT_TRUE(absl::StrContains(status.message(), "ink ran dry")) << status;
  }
  painter_.throw_at = kEnvs;
  ASSERT_TRUE(thread->DrawFlagged(std::vector<uint8_t>{1, 0, 0}).ok());
  EXPECT_GT(ColourOf(2), 200);
}

TEST_F(ImageThreadTest, MissingRendererIsReportedAtStart) {
  painter_.start = MakeError(ErrorCode::kUnsupported, "no libEGL");
  const absl::Status status =
      ImageThread::Create(&painter_, kSmall, kEnvs, images_).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  EXPECT_TRUE(absl::StrContains(status.message(), "images: no libEGL"))
      << status;
}

TEST_F(ImageThreadTest, StopReleasesTheRenderer) {
  Make();
  EXPECT_EQ(painter_.stops, 1);
}

}  // namespace
}  // namespace tandem
