#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "base/error.h"
#include "viz/inspect/inspection_output.h"
#include "viz/inspect/testing/sample_inspection.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

Json Parse(const Inspection& inspection) {
  return Json::parse(JsonOf(inspection));
}

Inspection SampleSegment() {
  Inspection inspection;
  inspection.name = "mosaic.fastlane.run";
  inspection.is_segment = true;
  inspection.frames_per_sec = 3;
  return inspection;
}

TEST(InspectionJson, TheReadmeHasTheTableOfKeys) {
  std::ifstream file("docs/inspector.md");
  std::stringstream readme;
  readme << file.rdbuf();
  EXPECT_TRUE(absl::StrContains(readme.str(), KeysTable()))
      << "next: put the output of tools/inspect --keys into "
         "docs/inspector.md:\n"
      << KeysTable();
}

TEST(InspectionJson, HasTheValuesOfTheInspection) {
  const Json json = Parse(SampleInspection());
  EXPECT_EQ(json["kind"], "region");
  EXPECT_EQ(json["name"], "demo");
  EXPECT_EQ(json["state"], "look");
  EXPECT_EQ(json["remarks"], Json({"a remark"}));
  EXPECT_EQ(json["born"], "2023-11-14T22:13:20+00:00");
  EXPECT_EQ(json["engine"]["phase"], "stepping");
  EXPECT_EQ(json["engine"]["pid"], 40001);
  EXPECT_EQ(json["exchange"], "pending");
  EXPECT_EQ(json["last_error"]["name"], "EngineFailed");
  EXPECT_EQ(json["step_times"]["count"], 1000);
  EXPECT_EQ(json["step_times"]["mean_ns"], 500'000.0);
  EXPECT_EQ(json["step_times"]["buckets"].size(), 2u);
  EXPECT_EQ(json["rates"]["exchanges_per_second"], 1480.0);
  EXPECT_EQ(json["rings"]["to_engine"]["messages"], 2);
  EXPECT_EQ(json["frames"]["watched"], true);
  EXPECT_EQ(json["images"]["frame_seq"], 12'344);
  EXPECT_EQ(json["commands"]["services_on"], Json({"agent", "scene"}));
  EXPECT_EQ(json["commands"]["services_off"], Json({"camera"}));
  EXPECT_EQ(json["commands"]["dropped_messages"], 3);
  EXPECT_EQ(json["attendants"][0]["slot"], 1);
  EXPECT_EQ(json["attendants"][0]["label"], "panel");
  EXPECT_EQ(json["attendants"][0]["pid"], 40003);
  EXPECT_EQ(json["workers"].size(), 2u);
  EXPECT_EQ(json["workers"][0]["life"], "alive");
  EXPECT_EQ(json["workers"][0]["env"], 7);
  EXPECT_EQ(json["workers"][0]["busy_share"], 0.91);
  EXPECT_EQ(json["workers"][1]["pid"], 40012);
  EXPECT_EQ(json["workers"][1]["first_env"], 32);
  EXPECT_EQ(json["workers"][1]["done"], true);
  EXPECT_EQ(json["fields"].size(), 2u);
  EXPECT_EQ(json["fields"][0]["role"], "obs");
  EXPECT_EQ(json["fields"][0]["path"], "");
  EXPECT_EQ(json["fields"][0]["dtype"], "float32");
  EXPECT_EQ(json["fields"][0]["shape"], Json({64, 17}));
  EXPECT_EQ(json["fields"][1]["offset"], 9984);
  EXPECT_EQ(json["fields"][1]["bytes"], 64);
  EXPECT_EQ(json["sections"][1]["offset"], 8448);
}

TEST(InspectionJson, ARegionWithoutFieldsHasAnEmptyArray) {
  Inspection inspection = SampleInspection();
  inspection.region.fields.clear();
  EXPECT_EQ(Parse(inspection)["fields"], Json::array());
}

TEST(InspectionJson, HasThePathToAGpu) {
  Inspection inspection = SampleInspection();
  EXPECT_EQ(Parse(inspection)["gpu"], Json(nullptr));
  inspection.region.gpu = GpuReport{.path = "CUDA IPC",
                                    .device = "GPU-41424344",
                                    .bytes = 8192,
                                    .fills_cpu = true};
  inspection.region.gpu->arrays = {{.role = "obs", .dtype = "float32"}};
  const Json gpu = Parse(inspection)["gpu"];
  EXPECT_EQ(gpu["path"], "CUDA IPC");
  EXPECT_EQ(gpu["device"], "GPU-41424344");
  EXPECT_EQ(gpu["bytes"], 8192);
  EXPECT_EQ(gpu["fills_cpu"], true);
  EXPECT_EQ(gpu["arrays"][0]["role"], "obs");
}

TEST(InspectionJson, StateIsTheWorst) {
  Inspection inspection = SampleInspection();
  inspection.verdict.problems = {"a problem"};
  EXPECT_EQ(Parse(inspection)["state"], "broken");
  inspection.verdict = {};
  EXPECT_EQ(Parse(inspection)["state"], "ok");
  inspection.status = MakeError(ErrorCode::kNotReady, "none");
  EXPECT_EQ(Parse(inspection)["state"], "unreadable");
  EXPECT_EQ(Parse(inspection)["problems"], Json({"none"}));
}

TEST(InspectionJson, UnknownValuesAreNull) {
  Inspection inspection = SampleInspection();
  inspection.rates.reset();
  inspection.region.frames.reset();
  inspection.region.images.reset();
  inspection.region.commands.reset();
  inspection.region.status = ErrorCode::kOk;
  inspection.region.to_client.messages.reset();
  inspection.region.engine.pid = 0;
  inspection.region.mode = static_cast<RegionMode>(9);
  inspection.region.kind = static_cast<ExchangeKind>(9);
  const Json json = Parse(inspection);
  for (const char* key : {"rates", "frames", "images", "commands", "last_error",
                          "mode", "exchange_kind"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_TRUE(json["rings"]["to_client"]["messages"].is_null());
  EXPECT_TRUE(json["engine"]["pid"].is_null());
}

TEST(InspectionJson, ARegionWithoutAHeaderHasNoMoreThanItsFile) {
  Inspection inspection;
  inspection.region.file_bytes = 7;
  inspection.verdict.problems = {"too short"};
  const Json json = Parse(inspection);
  EXPECT_EQ(json["bytes"], 7);
  EXPECT_FALSE(json.contains("engine"));
}

TEST(InspectionJson, ReplacesInvalidUtf8) {
  Inspection inspection;
  inspection.status =
      MakeError(ErrorCode::kInvalidArgument, "found '\xff\xfe'");
  EXPECT_TRUE(Parse(inspection)["problems"][0].is_string());
  EXPECT_FALSE(absl::StrContains(JsonOf(inspection), "\n"));
}

TEST(InspectionJson, AListHasAnEntryForEach) {
  EXPECT_EQ(Json::parse(ListJsonOf({})), Json::parse(R"({"entries": []})"));
  const Json list =
      Json::parse(ListJsonOf({SampleInspection(), SampleSegment()}));
  EXPECT_EQ(list["entries"][0], Parse(SampleInspection()));
  EXPECT_EQ(list["entries"][1]["kind"], "segment");
}

}  // namespace
}  // namespace tandem
