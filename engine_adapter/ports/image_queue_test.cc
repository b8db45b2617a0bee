#include "engine_adapter/image_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr ImageRequest kSmall = {.width = 4, .height = 2};

absl::StatusOr<Image> OnePixel() {
  return Image{.data = {1, 2, 3}, .width = 1, .height = 1};
}

// A queue whose render thread waits for GoOn, in a first job. A test ends the
// queue before its own variables, which the jobs use.
class ImageQueueTest : public testing::Test {
 protected:
  ImageQueueTest() {
    Add(wanted_, [this](const auto&) { go_on_.get_future().wait(); });
  }
  void SetUp() override { alarm(60); }  // A hang is a failure.
  void TearDown() override { alarm(0); }
  void GoOn() { go_on_.set_value(); }
  void Add(const std::weak_ptr<const void>& wanted, CameraPort::Done done) {
    absl::StatusOr<std::shared_ptr<const void>> held = queue_->Admit(kSmall);
    ASSERT_TRUE(held.ok()) << held.status();
    queue_->Add({.held = *std::move(held),
                 .wanted = wanted,
                 .render = OnePixel,
                 .done = std::move(done)});
  }

  const std::shared_ptr<const void> wanted_ = std::make_shared<bool>(true);
  std::promise<void> go_on_;
  std::thread::id ended_in_;
  std::unique_ptr<ImageQueue> queue_ = std::make_unique<ImageQueue>(
      [this] { ended_in_ = std::this_thread::get_id(); });
};

TEST_F(ImageQueueTest, RendersInOrderInItsOwnThread) {
  std::vector<size_t> order;  // used by the render thread
  std::promise<std::thread::id> last;
  for (size_t i = 0; i < 5; ++i) {
    Add(wanted_, [&, i](const auto& image) {
      EXPECT_TRUE(image.ok()) << image.status();
      order.push_back(i);
      if (i == 4) last.set_value(std::this_thread::get_id());
    });
  }
  GoOn();
  const std::thread::id rendered_in = last.get_future().get();
  queue_.reset();
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_NE(rendered_in, std::this_thread::get_id());
  EXPECT_EQ(ended_in_, rendered_in);
}

TEST_F(ImageQueueTest, DropsJobsWhoseCallersHaveLeft) {
  int answers = 0;
  auto leaving = std::make_shared<bool>(true);
  for (size_t i = 1; i < ImageQueue::kMostAtATime; ++i) {
    Add(leaving, [&](const auto&) { ++answers; });
  }
  leaving.reset();
  // They do not count as pending any more.
  std::promise<void> rendered;
  Add(wanted_, [&](const auto&) { rendered.set_value(); });
  GoOn();
  rendered.get_future().wait();
  queue_.reset();
  EXPECT_EQ(answers, 0);
}

TEST_F(ImageQueueTest, CountsAnImageUntilItIsReleased) {
  std::vector<Image> images;  // used by the render thread, until `last`
  std::promise<void> last;
  for (size_t i = 1; i < ImageQueue::kMostAtATime; ++i) {
    Add(wanted_, [&](absl::StatusOr<Image> image) {
      images.push_back(*std::move(image));
      if (images.size() + 1 == ImageQueue::kMostAtATime) last.set_value();
    });
  }
  const absl::Status refused = queue_->Admit(kSmall).status();
  EXPECT_EQ(CodeOf(refused), ErrorCode::kRingFull);
  EXPECT_TRUE(absl::StrContains(refused.message(), "ask again")) << refused;
  GoOn();
  last.get_future().wait();
  // The first job's image was released.
  const auto held = queue_->Admit(kSmall);
  EXPECT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(CodeOf(queue_->Admit(kSmall).status()), ErrorCode::kRingFull);
  images.pop_back();
  EXPECT_TRUE(queue_->Admit(kSmall).ok());
  queue_.reset();
}

TEST_F(ImageQueueTest, TheEndAnswersWaitingJobs) {
  int answers = 0;
  for (int i = 0; i < 20; ++i) {
    Add(wanted_, [&](const auto& image) {
      ++answers;
      EXPECT_TRUE(image.ok() ||
                  CodeOf(image.status()) == ErrorCode::kEngineFailed);
    });
  }
  GoOn();
  queue_.reset();
  EXPECT_EQ(answers, 20);
}

TEST(ImageQueue, RefusesLargeImages) {
  ImageQueue queue;
  for (const ImageRequest& request :
       {ImageRequest{.width = 16384, .height = 1},
        ImageRequest{.width = 1, .height = 16384},
        ImageRequest{.width = 8000, .height = 8000}}) {
    const absl::Status status = queue.Admit(request).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "pixels")) << status;
  }
  const ImageRequest large = {.width = 4096, .height = 2048};  // 24 MiB
  std::vector<std::shared_ptr<const void>> held;
  for (size_t i = 0; i < 256 / 24; ++i) {
    held.push_back(queue.Admit(large).value());
  }
  EXPECT_EQ(CodeOf(queue.Admit(large).status()), ErrorCode::kRingFull);
}

TEST(ImageQueue, AnExceptionIsTheJobsError) {
  // Not the Status: ThreadSanitizer does not see its counted references.
  std::promise<std::pair<ErrorCode, std::string>> got;
  const auto wanted = std::make_shared<bool>(true);
  ImageQueue queue;
  queue.Add({.held = queue.Admit(kSmall).value(),
             .wanted = wanted,
             .render = []() -> absl::StatusOr<Image> {
               throw std::runtime_error("no paint");
             },
             .done =
                 [&](const auto& image) {
                   got.set_value({CodeOf(image.status()),
                                  std::string(image.status().message())});
                 }});
  const auto [code, text] = got.get_future().get();
  EXPECT_EQ(code, ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(text, "no paint")) << text;
}

TEST(RenderImage, ReturnsThePixelsOrTheError) {
  const auto paint = [](const FrameTile& tile) {
    tile.first[tile.stride] = std::byte{7};  // in the second row
    return absl::OkStatus();
  };
  const Image image = RenderImage(kSmall, paint).value();
  EXPECT_EQ(image.width, 4U);
  EXPECT_EQ(image.height, 2U);
  ASSERT_EQ(image.data.size(), 24U);
  EXPECT_EQ(image.data[12], 7);
  const auto fail = [](const FrameTile&) {
    return MakeError(ErrorCode::kUnsupported, "no paint");
  };
  EXPECT_EQ(CodeOf(RenderImage(kSmall, fail).status()),
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace tandem
