// Frames: the ring of frames for viewers, with --frames.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "nlohmann/json.hpp"
#include "transport/attached_frames.h"
#include "transport/frame_reader.h"

namespace tandem {
namespace {

class Frames : public RulesFor<Capability::kFrames> {
 protected:
  void Serve(const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {kFramesFlag};
    flags.insert(flags.end(), more.begin(), more.end());
    engine_.Start(flags);
    Attach();
  }
  Frame Request() {
    absl::StatusOr<Frame> frame = engine_.RequestFrame();
    Require(frame.status());
    return *std::move(frame);
  }
  AttachedFrames Watch() {
    absl::StatusOr<AttachedFrames> frames =
        AttachedFrames::OpenRegion(engine_.name);
    Require(frames.status());
    return *std::move(frames);
  }
};

TEST_F(Frames, ARequestedFrameHasATileForEachEnvironment) {
  Serve({"--frame_hz=0"});
  const Frame frame = Request();
  EXPECT_EQ(frame.width % kFrameWidth, 0);
  EXPECT_EQ(frame.height % kFrameHeight, 0);
  EXPECT_GE(frame.width / kFrameWidth * (frame.height / kFrameHeight), kEnvs);
  EXPECT_EQ(frame.channels, 3);
  EXPECT_EQ(frame.frame_len, uint64_t{frame.width} * frame.height * 3);
  const auto about = nlohmann::json::parse(frame.metadata);
  EXPECT_EQ(about.at("envs"), nlohmann::json({0, 1, 2}));
  EXPECT_EQ(about.at("columns"), frame.width / kFrameWidth);
}

TEST_F(Frames, EachRequestGivesANewFrameOfTheNewestState) {
  Serve({"--frame_hz=0"});
  uint64_t last = 0;
  for (int step = 0; step < 5; ++step) {
    Step();
    const Frame frame = Request();
    EXPECT_GT(frame.number, last);
    EXPECT_EQ(nlohmann::json::parse(frame.metadata).at("step"), frame_seq());
    last = frame.number;
  }
}

TEST_F(Frames, AViewerGetsFramesWhileTheEngineSteps) {
  Serve();
  AttachedFrames frames = Watch();
  Frame frame;
  for (int seen = 0; seen < 3;) {
    Step();
    const FrameReader::Found found = frames.reader().Next(&frame);
    ASSERT_NE(found, FrameReader::Found::kBroken);
    if (found == FrameReader::Found::kFrame) ++seen;
  }
}

TEST_F(Frames, ViewersMayComeAndGo) {
  Serve();
  for (int viewer = 0; viewer < 100; ++viewer) {
    AttachedFrames frames = Watch();
    Frame frame;
    ASSERT_NE(frames.reader().Newest(&frame), FrameReader::Found::kBroken);
    Step();
  }
  Request();
}

TEST_F(Frames, TheRingEndsWithTheEngine) {
  Serve();
  Request();
  AttachedFrames frames = Watch();
  engine_.server->Signal(SIGTERM);
  EXPECT_EQ(engine_.server->ExitCode(), 0);
  Frame frame;
  while (frames.reader().Next(&frame) == FrameReader::Found::kFrame) continue;
  EXPECT_TRUE(frames.reader().Invalidated());
  EXPECT_EQ(frames.writer(), AttachedFrames::Writer::kGone);
}

}  // namespace
}  // namespace tandem
