#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "viz/inspect/inspection_output.h"
#include "viz/inspect/testing/sample_inspection.h"

namespace tandem {
namespace {

std::string Text(const Inspection& inspection) {
  return TextOf(inspection, absl::FromUnixSeconds(1'700'000'061),
                absl::UTCTimeZone());
}

void ExpectHas(const std::string& text,
               const std::vector<absl::string_view>& facts) {
  for (const absl::string_view fact : facts) {
    EXPECT_TRUE(absl::StrContains(text, fact)) << fact << " in\n" << text;
  }
}

TEST(InspectionText, ShowsContentAndSpeed) {
  ExpectHas(Text(SampleInspection()),
            {"demo: LOOK",
             "a remark",
             "HalfCheetah-v5, 64 environments",
             "SAME_STEP",
             "2023-11-14 22:13:20 +0000, 1 min 0 s ago",
             "pid 40001, stepping for",
             "250 us",
             "12,345 done, one pending",
             "1,480 exchanges/s",
             "94,720 environment steps/s",
             "busy 82 %",
             "last 0.5 s",
             "the client's own: last 0.5, rolling return -3.25, 1,017 episodes "
             "of 200.5 steps",
             "1,000",
             "48 bytes of 512 KiB (0 %), 2 messages",
             "320x240 RGB, 8 slots, 77 published, 30.0/s, watched",
             "agent, scene on; camera off",
             "3 invalid messages",
             "'panel' (pid 40003)",
             "84x84x3 each, of exchange 12,344",
             "obs            ''                       float32  [64, 17]",
             "4.25 KiB at 4096",
             "0 alive   pid 40011    env     0 .. 31",
             "395,040 steps, in env 7, busy 91 %",
             "1 dead    pid 40012    env    32 .. 63",
             "busy 78 %",
             "EngineFailed: joint 3 exploded"});
}

TEST(InspectionText, UnknownRewardsAreDashes) {
  Inspection inspection;
  inspection.name = "mosaic.fastlane.run";
  inspection.is_segment = true;
  inspection.segment.ring.metrics = {
      .last_reward = NAN, .rolling_return = -NAN, .step_rate_hz = 4};
  ExpectHas(Text(inspection), {"last reward -, rolling return -, 4 steps/s"});
}

TEST(InspectionText, ShowsThePathToAGpu) {
  Inspection inspection = SampleInspection();
  ExpectHas(Text(inspection), {"GPU", "no path: the engine writes in the "});
  inspection.region.gpu = GpuReport{.path = "CUDA IPC",
                                    .device = "GPU-41424344",
                                    .bytes = 8192,
                                    .fills_cpu = true};
  inspection.region.gpu->arrays = {{.role = "obs"}, {.role = "images"}};
  ExpectHas(Text(inspection),
            {"CUDA IPC, 8.00 KiB on GPU-41424344: obs, images; observations "
             "also in the region"});
  inspection.region.gpu->fills_cpu = false;
  ExpectHas(Text(inspection), {"observations not in the region"});
}

TEST(InspectionText, FitsAWindow) {
  const std::string text = Text(SampleInspection());
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(line.size(), 110u) << line;
  }
}

TEST(InspectionText, RowsBeyondTwentyAreCounted) {
  Inspection inspection = SampleInspection();
  inspection.region.fields.resize(23, {.role = "action", .path = "/arm"});
  inspection.region.workers.resize(64);
  ExpectHas(Text(inspection), {"'/arm'", "and 3 more", "and 44 more"});
  inspection.region.fields.clear();
  inspection.region.workers.clear();
  EXPECT_FALSE(absl::StrContains(Text(inspection), "fields  "));
  EXPECT_FALSE(absl::StrContains(Text(inspection), "workers"));
}

TEST(InspectionText, FieldsWithoutRowsAreCountedInTheTask) {
  Inspection inspection = SampleInspection();
  inspection.region.obs_size = 0;
  inspection.region.act_size = 0;
  inspection.region.fields = {{.role = "obs", .path = "/image"},
                              {.role = "obs", .path = "/joints"},
                              {.role = "action", .path = ""}};
  ExpectHas(Text(inspection), {"of 2 observed and 1 acted fields"});
  inspection.region.act_size = 6;
  ExpectHas(Text(inspection), {"2 observed fields and 6 acted values"});
  inspection.region.obs_size = 4;
  inspection.region.act_size = 0;
  ExpectHas(Text(inspection), {"4 observed values and 1 acted field,"});
}

TEST(InspectionText, ADeadSideIsCalledDead) {
  Inspection inspection = SampleInspection();
  inspection.region.engine.life = Life::kDead;
  ExpectHas(Text(inspection), {"dead, pid 40001, last stepping"});
}

TEST(InspectionText, HeaderOnlyClientShowsInTheSpeed) {
  Inspection inspection = SampleInspection();
  inspection.region.client = {.life = Life::kAbsent};
  ExpectHas(Text(inspection), {"but steps"});
  inspection.rates->exchanges_per_sec = 0;
  ExpectHas(Text(inspection), {"client     none"});
}

TEST(InspectionText, SectionsAreShownOnceOneIsWrong) {
  Inspection inspection = SampleInspection();
  EXPECT_FALSE(absl::StrContains(Text(inspection), "sections"));
  inspection.region.sections[1].problem = "it overlaps";
  ExpectHas(Text(inspection),
            {"obs          at         4096", "1536 bytes   WRONG"});
}

TEST(InspectionText, WithoutAHeaderOnlyTheFileIsShown) {
  Inspection inspection;
  inspection.name = "demo";
  inspection.region.file_bytes = 12;
  inspection.verdict.problems = {"too short"};
  inspection.verdict.remarks = {"a remark"};
  EXPECT_EQ(Text(inspection),
            "demo: BROKEN\n  WRONG  too short\n  note   a remark\n\n"
            "file       12 bytes\n");
}

TEST(InspectionText, FormatsAnyGarbage) {
  Inspection inspection = SampleInspection();
  inspection.region.generation = ~uint64_t{0};
  inspection.region.exchange = ExchangeState::kImpossible;
  inspection.region.engine.phase = static_cast<Phase>(15);
  inspection.region.autoreset = static_cast<AutoresetMode>(~0u);
  inspection.region.status = static_cast<ErrorCode>(~0u);
  inspection.region.step_times.counts.fill(~uint64_t{0});
  inspection.region.step_times.total_ns = ~uint64_t{0};
  inspection.region.to_client.messages.reset();
  inspection.region.frames->problem = "no ring";
  inspection.rates->exchanges_per_sec = 1e300;
  ExpectHas(Text(inspection), {"garbled for", "does not fit", "changing",
                               "invalid: no ring", "Unknown"});
}

TEST(InspectionText, ASegmentHasItsWriterAndItsFrames) {
  Inspection inspection;
  inspection.name = "mosaic.fastlane.run";
  inspection.is_segment = true;
  inspection.segment.writer = Life::kUnknown;
  inspection.segment.ring.geometry = {
      .width = 4, .height = 2, .channels = 4, .capacity = 3};
  inspection.frames_per_sec = 12.25;
  ExpectHas(Text(inspection), {"run: OK", "holds no lock", "4x2 RGBA, 3 slots",
                               "12.2/s", "not watched"});
}

TEST(InspectionText, UnreadableRegionShowsItsError) {
  Inspection inspection;
  inspection.status = MakeError(ErrorCode::kNotReady, "there is none");
  EXPECT_EQ(Text(inspection), "there is none\n");
}

TEST(InspectionText, TheListHasALineForEach) {
  Inspection broken = SampleInspection();
  broken.name = std::string(60, 'n');
  broken.verdict.problems = {"it is dead"};
  Inspection unreadable;
  unreadable.name = "secret";
  unreadable.status = MakeError(ErrorCode::kAccessDenied, "it is alice's");
  Inspection fine = SampleInspection();
  fine.verdict.remarks.clear();
  const std::vector<std::string> lines = absl::StrSplit(
      ListTextOf({broken, unreadable, fine}), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  ExpectHas(lines[1], {"BROKEN", broken.name, "it is dead"});
  ExpectHas(lines[2], {"?", "secret", "alice"});
  ExpectHas(lines[3], {"OK", "HalfCheetah-v5 x 64", "1,480 exchanges/s"});
  EXPECT_EQ(lines[2].find("region"), lines[3].find("HalfCheetah"));
  EXPECT_TRUE(absl::StrContains(ListTextOf({}), "no region"));
}

std::vector<std::string> Bars(const StepTimesSnapshot& times) {
  return absl::StrSplit(BarsOf(times), '\n', absl::SkipEmpty());
}

TEST(InspectionText, ThePanelHasTheLinesAndTheServices) {
  const nlohmann::json panel =
      nlohmann::json::parse(PanelJsonOf(SampleInspection()));
  EXPECT_EQ(panel["known"], true);
  EXPECT_EQ(panel["rows"][0], nlohmann::json({"state", "look. a remark"}));
  ExpectHas(panel["rows"].dump(),
            {"pid 40001, stepping for 250 us", "1,480 exchanges/s",
             R"("worker 0","alive, pid 40011, stepping for 250 us")",
             R"(["p50, p99",)"});
  EXPECT_EQ(panel["services_on"], nlohmann::json({"agent", "scene"}));
  EXPECT_EQ(panel["services_off"], nlohmann::json({"camera"}));
  Inspection missing;
  missing.status = MakeError(ErrorCode::kNotReady, "there is none");
  EXPECT_EQ(nlohmann::json::parse(PanelJsonOf(missing))["known"], false);
}

TEST(InspectionText, BarsAreAsLongAsTheirShare) {
  StepTimesSnapshot times;
  EXPECT_EQ(BarsOf(times), "");
  times.counts[40] = 1000;
  times.counts[42] = 500;
  times.counts[43] = 1;
  const std::vector<std::string> bars = Bars(times);
  ASSERT_EQ(bars.size(), 4u);
  const auto length = [](const std::string& bar) {
    return std::count(bar.begin(), bar.end(), '#');
  };
  EXPECT_EQ(length(bars[0]), 50);
  EXPECT_EQ(length(bars[1]), 0);
  EXPECT_EQ(length(bars[2]), 25);
  EXPECT_EQ(length(bars[3]), 1);  // A nonzero count has a bar.
  ExpectHas(bars[0], {"131 us", "1,000"});
}

TEST(InspectionText, BarsOfAWideHistogramAreGroupedWithoutLoss) {
  StepTimesSnapshot times;
  times.counts.fill(1);
  const std::vector<std::string> bars = Bars(times);
  EXPECT_LE(bars.size(), 14u);
  int sum = 0;
  for (const std::string& bar : bars) {
    sum += std::stoi(bar.substr(bar.rfind(' ')));
  }
  EXPECT_EQ(sum, 104);
  // Two counts far apart.
  times.counts.fill(0);
  times.counts[0] = 1;
  times.counts[103] = 1;
  EXPECT_LE(Bars(times).size(), 14u);
}

}  // namespace
}  // namespace tandem
