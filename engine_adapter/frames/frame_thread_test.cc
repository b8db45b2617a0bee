#include "engine_adapter/frames/frame_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/frame_source.h"
#include "transport/frame_geometry.h"
#include "transport/frame_reader.h"
#include "transport/frame_writer.h"

namespace tandem {
namespace {

// Each environment is a number; each byte of its image has this value.
class NumberSource final : public FrameSource {
 public:
  explicit NumberSource(size_t envs) : numbers(envs) {}

  absl::Status Prepare(const FrameOptions& options) override {
    envs_ = options.envs;
    copies_.resize(envs_.size());
    return absl::OkStatus();
  }
  void Capture(uint32_t place) override {
    if (throws == Throws::kCapture) throw std::runtime_error("fell over");
    copies_[place] = numbers[envs_[place]];
  }
  absl::Status Start() override {
    ++starts;
    if (throws == Throws::kStart) throw std::runtime_error("fell over");
    return start_status;
  }
  absl::Status Draw(uint32_t place, const FrameTile& tile) override {
    ++draws;
    if (throws == Throws::kDraw) throw std::runtime_error("fell over");
    for (size_t row = 0; row < tile.rows; ++row) {
      std::fill_n(tile.first + row * tile.stride, tile.row_bytes,
                  std::byte{copies_[place]});
    }
    return absl::OkStatus();
  }
  void Stop() override { ++stops; }

  std::vector<uint8_t> numbers;  // written by the stepping thread
  absl::Status start_status;
  enum class Throws { kNot, kStart, kCapture, kDraw };
  std::atomic<Throws> throws{Throws::kNot};
  std::atomic<int> starts{0};
  std::atomic<int> draws{0};
  std::atomic<int> stops{0};

 private:
  std::vector<uint32_t> envs_;
  std::vector<uint8_t> copies_;
};

// A frame thread; the test is the stepping thread.
class Rig {
 public:
  explicit Rig(FrameOptions options, absl::Status start_status = {})
      : options_(std::move(options)), source(8) {
    source.start_status = std::move(start_status);
    EXPECT_TRUE(CheckFrameOptions(options_, 8).ok());
    EXPECT_TRUE(source.Prepare(options_).ok());
    const FrameGrid grid = FrameGrid::Of(options_);
    const FrameGeometry geometry = WithAlignedSlots(
        {.width = grid.FrameWidth(),
         .height = grid.FrameHeight(),
         .capacity = options_.slots,
         .metadata_bytes = FrameThread::MetadataBytes(options_)});
    ring_.resize(FrameWriter::RingBytes(geometry).value() / sizeof(uint64_t) +
                 1);
    const std::span<std::byte> ring = std::as_writable_bytes(std::span(ring_));
    FrameWriter writer = FrameWriter::Create(ring, geometry).value();
    reader_ = std::make_unique<FrameReader>(FrameReader::Attach(ring).value());
    thread = std::make_unique<FrameThread>(
        &source, options_, 8, /*has_rewards=*/true, std::move(writer),
        FrameThread::Links{.watched =
                               [this] {
                                 ++probes;
                                 return watched.load();
                               },
                           .wake_step_thread = [this] { ++calls; },
                           .answer = [this](uint32_t it) { answered = it; },
                           .log =
                               [this](absl::string_view line) {
                                 const std::lock_guard<std::mutex> lock(mutex_);
                                 log_.emplace_back(line);
                               },
                           .own_run = [this] { return own_run; }});
  }

  // An exchange that sets every environment to `number`.
  void Step(uint8_t number) {
    source.numbers.assign(8, number);
    const std::vector<uint8_t> none(8);
    const std::vector<float> rewards(8, number);
    thread->Count({.resets = none, .rewards = rewards, .dones = none});
    thread->Serve(++step, request);
  }
  // Behaves as an idle stepping thread that serves every call.
  template <typename Until>
  void ServeUntil(Until until) {
    while (!until()) {
      thread->Serve(step, request);
      std::this_thread::yield();
    }
  }
  Frame Latest() {
    Frame frame;
    EXPECT_EQ(reader_->Newest(&frame), FrameReader::Found::kFrame);
    return frame;
  }
  uint64_t Head() const { return reader_->Head(); }
  bool Invalidated() const { return reader_->Invalidated(); }
  std::vector<std::string> Log() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return log_;
  }

 private:
  FrameOptions options_;
  std::vector<uint64_t> ring_;
  std::unique_ptr<FrameReader> reader_;
  std::mutex mutex_;
  std::vector<std::string> log_;

 public:
  NumberSource source;
  std::atomic<bool> watched{false};
  std::atomic<int> probes{0};
  std::atomic<int> calls{0};
  std::atomic<uint32_t> answered{0};
  uint64_t step = 0;
  uint32_t request = 0;
  std::optional<RunSnapshot> own_run;
  std::unique_ptr<FrameThread> thread;  // last: it uses the others
};

const FrameOptions kThree = {
    .width = 3, .height = 2, .envs = {0, 5, 7}, .hz = 1000};

TEST(FrameThread, DrawsNothingWithoutReader) {
  Rig rig(kThree);
  // It checks for readers repeatedly, so it could have detected one.
  while (rig.probes < 3) rig.Step(1);
  EXPECT_EQ(rig.Head(), 0U);
  EXPECT_EQ(rig.calls, 0);
  EXPECT_EQ(rig.source.starts, 0);
  rig.thread.reset();
  EXPECT_EQ(rig.source.draws, 0);
  EXPECT_EQ(rig.source.stops, 0);
  EXPECT_TRUE(rig.Invalidated());
}

TEST(FrameThread, AnswersRequestWithCurrentState) {
  FrameOptions options = kThree;
  options.hz = 0;
  Rig rig(options);
  for (uint8_t number = 1; number <= 50; ++number) {
    rig.Step(number);
    ++rig.request;
    rig.ServeUntil([&] { return rig.answered == rig.request; });
    const Frame frame = rig.Latest();
    EXPECT_EQ(frame.number, number);
    ASSERT_EQ(frame.pixels.size(), 6U * 4 * 3);
    EXPECT_EQ(frame.pixels[0], std::byte{number});
    EXPECT_EQ(frame.pixels.back(), std::byte{0});  // the fourth, empty place
    EXPECT_EQ(frame.metrics.last_reward, number);
    EXPECT_TRUE(absl::StartsWith(
        frame.metadata,
        absl::StrCat("{\"step\":", number, ",\"envs\":[0,5,7],")))
        << frame.metadata;
  }
  EXPECT_EQ(rig.probes, 0);
  EXPECT_EQ(rig.source.starts, 1);
}

TEST(FrameThread, TheClientsOwnStatisticsReplaceTheEngines) {
  FrameOptions options = kThree;
  options.hz = 0;
  Rig rig(options);
  const auto drawn = [&rig] {
    rig.Step(1);
    ++rig.request;
    rig.ServeUntil([&] { return rig.answered == rig.request; });
    return rig.Latest();
  };
  rig.own_run = {.last_reward = 0.5,
                 .rolling_return = -3,
                 .episodes = 17,
                 .episode_length = 200};
  const Frame own = drawn();
  EXPECT_EQ(own.metrics.last_reward, 0.5);
  EXPECT_EQ(own.metrics.rolling_return, -3);
  EXPECT_TRUE(
      absl::EndsWith(own.metadata, R"("episodes":17,"episode_length":200.0})"))
      << own.metadata;
  rig.own_run.reset();
  const Frame engines = drawn();
  EXPECT_EQ(engines.metrics.last_reward, 1);
  EXPECT_EQ(engines.metrics.rolling_return, 2);
  EXPECT_TRUE(absl::EndsWith(engines.metadata, R"("episodes":0})"))
      << engines.metadata;
}

TEST(FrameThread, DrawsWhileAReaderIsPresent) {
  Rig rig(kThree);
  rig.watched = true;
  uint8_t number = 0;
  while (rig.Head() < 20) rig.Step(++number);
  rig.watched = false;
  const int probes = rig.probes;
  while (rig.probes < probes + 2) rig.Step(++number);
  const uint64_t head = rig.Head();
  while (rig.probes < probes + 4) rig.Step(++number);
  EXPECT_EQ(rig.Head(), head);
}

TEST(FrameThread, ShowsPause) {
  Rig rig(kThree);
  rig.watched = true;
  while (rig.Head() < 3) rig.Step(7);
  // No step follows; the frames' step rate becomes 0.
  rig.ServeUntil(
      [&] { return rig.Head() > 4 && rig.Latest().metrics.step_rate_hz == 0; });
  EXPECT_EQ(rig.Latest().pixels[0], std::byte{7});
}

TEST(FrameThread, FailedRenderIsABlackFrameWithTheError) {
  FrameOptions options = kThree;
  options.hz = 0;
  Rig rig(options, MakeError(ErrorCode::kUnsupported, "no \"EGL\"\there"));
  for (int i = 0; i < 3; ++i) {
    rig.Step(9);
    ++rig.request;
    rig.ServeUntil([&] { return rig.answered == rig.request; });
  }
  const Frame frame = rig.Latest();
  EXPECT_EQ(frame.pixels, std::vector<std::byte>(frame.pixels.size()));
  EXPECT_TRUE(absl::EndsWith(
      frame.metadata,
      R"("error":"Unsupported","error_text":"no \"EGL\"\\x09here"})"))
      << frame.metadata;
  EXPECT_EQ(rig.Log(), std::vector<std::string>{"no \"EGL\"\there"});
  EXPECT_EQ(rig.source.starts, 1);
  EXPECT_EQ(rig.source.draws, 0);
}

TEST(FrameThread, EndsWhileItWaitsForCopies) {
  Rig rig(kThree);
  rig.watched = true;
  while (rig.calls == 0) std::this_thread::yield();
  rig.thread.reset();
  EXPECT_TRUE(rig.Invalidated());
  EXPECT_EQ(rig.source.draws, 0);
}

TEST(FrameThread, ReportsExceptionOfSourceAndGoesOn) {
  using Throws = NumberSource::Throws;
  for (const Throws where : {Throws::kStart, Throws::kCapture, Throws::kDraw}) {
    Rig rig({.width = 4, .height = 4, .envs = {0}});
    rig.source.throws = where;
    rig.request = 1;
    rig.ServeUntil([&] { return rig.answered == 1U; });
    EXPECT_TRUE(absl::StrContains(rig.Latest().metadata, "fell over"))
        << rig.Latest().metadata;
    rig.source.throws = Throws::kNot;
    rig.request = 2;
    rig.ServeUntil([&] { return rig.answered == 2U; });
    // A source that failed to start stays failed.
    EXPECT_EQ(absl::StrContains(rig.Latest().metadata, "fell over"),
              where == Throws::kStart);
  }
}

}  // namespace
}  // namespace tandem
