#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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
  std::ifstream file("docs/inspector_keys.md");
  std::stringstream readme;
  readme << file.rdbuf();
  EXPECT_TRUE(absl::StrContains(readme.str(), KeysTable()))
      << "next: put the output of tools/inspect --keys into "
         "docs/inspector_keys.md:\n"
      << KeysTable();
}

// Adds an object's keys and those of its parts, as the table writes them.
void AddKeys(const Json& object, const std::string& before,
             std::set<std::string>* keys) {
  for (const auto& [key, value] : object.items()) {
    const bool many = value.is_array() && !value.empty();
    const Json& part = many ? value.front() : value;
    if (part.is_object()) {
      AddKeys(part, absl::StrCat(before, key, many ? "[]." : "."), keys);
    } else {
      keys->insert(before + key);
    }
  }
}

TEST(InspectionJson, HasTheKeysOfTheTable) {
  std::set<std::string> keys;
  AddKeys(Parse(SampleInspection()), "", &keys);
  AddKeys(Parse(SampleSegment()), "", &keys);
  // The table says of these parts whose keys they have.
  const std::pair<const char*, const char*> kSame[] = {
      {"client.", "engine."},
      {"rings.to_engine.", "rings.to_client."},
      {"rates.step_times.", "step_times."},
      {"rates.round_trips.", "step_times."},
      {"round_trips.", "step_times."}};
  std::set<std::string> expected;
  for (absl::string_view key : keys) {
    const char* whose = "";
    for (const auto& [part, other] : kSame) {
      if (*whose == '\0' && absl::ConsumePrefix(&key, part)) whose = other;
    }
    expected.insert(absl::StrCat(whose, key));
  }
  std::set<std::string> listed;
  for (const absl::string_view row : absl::StrSplit(KeysTable(), '\n')) {
    const std::vector<absl::string_view> cells = absl::StrSplit(row, " | ");
    const std::vector<absl::string_view> words = absl::StrSplit(cells[0], '`');
    for (size_t i = 1; i < words.size(); i += 2) listed.emplace(words[i]);
  }
  EXPECT_EQ(listed, expected);
}

TEST(InspectionJson, HasComputedValues) {
  const Json json = Parse(SampleInspection());
  EXPECT_EQ(json["kind"], "region");
  EXPECT_EQ(json["state"], "look");
  EXPECT_EQ(json["born"], "2023-11-14T22:13:20+00:00");
  EXPECT_EQ(json["engine"]["phase"], "stepping");
  EXPECT_EQ(json["exchange"], "pending");
  EXPECT_EQ(json["last_error"]["name"], "EngineFailed");
  EXPECT_EQ(json["step_times"]["count"], 1000);
  EXPECT_EQ(json["step_times"]["mean_ns"], 500'000.0);
  EXPECT_EQ(json["step_times"]["buckets"].size(), 2u);
  EXPECT_EQ(json["workers"][0]["env"], 7);
  EXPECT_EQ(json["workers"][0]["busy_share"], 0.91);
  EXPECT_EQ(json["workers"][1]["index"], 1);
  EXPECT_EQ(json["fields"][0]["shape"], Json({64, 17}));
}

TEST(InspectionJson, HasThePathToAGpu) {
  Inspection inspection = SampleInspection();
  inspection.region.gpu = GpuReport();
  inspection.region.gpu->arrays = inspection.region.fields;
  const Json json = Parse(inspection);
  EXPECT_EQ(json["gpu"]["arrays"], json["fields"]);
  for (const char* key : {"path", "device", "bytes", "fills_cpu"}) {
    EXPECT_TRUE(json["gpu"].contains(key)) << key;
  }
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
  inspection.region.status = ErrorCode::kOk;
  inspection.region.to_client.messages.reset();
  inspection.region.engine.pid = 0;
  inspection.region.mode = static_cast<RegionMode>(9);
  inspection.region.kind = static_cast<ExchangeKind>(9);
  const Json json = Parse(inspection);
  for (const char* key :
       {"rates", "frames", "gpu", "last_error", "mode", "exchange_kind"}) {
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
