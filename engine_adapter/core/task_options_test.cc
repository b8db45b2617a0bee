#include "engine_adapter/core/task_options.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Pair = std::pair<double, double>;

// Reads one option of each kind.
absl::Status AskAll(TaskOptions options) {
  options.Number("weight", 0.5, 0);
  options.Bool("ends", true);
  options.Count("frame_skip", 5);
  options.Text("xml_file", "ant.xml");
  options.Range("z_range", {0, 1});
  options.TextOrIndex("main_body", "1");
  options.Names("state", {"qpos", "qvel"});
  return options.Finish();
}

TEST(TaskOptions, GivesDefaultsForUnsetOptions) {
  TaskOptions options;
  EXPECT_EQ(options.Number("weight", 0.5), 0.5);
  EXPECT_EQ(options.Bool("ends", true), true);
  EXPECT_EQ(options.Count("frame_skip", 5), 5u);
  EXPECT_EQ(options.Text("xml_file", "ant.xml"), "ant.xml");
  EXPECT_EQ(options.Range("z_range", {0, 1}), Pair(0, 1));
  EXPECT_EQ(options.TextOrIndex("main_body", "1"), "1");
  EXPECT_TRUE(options.Names("state", {"qpos"}).empty());
  EXPECT_TRUE(options.Finish().ok());
}

TEST(TaskOptions, ReturnsGivenValues) {
  TaskOptions options =
      TaskOptions::Parse(R"({"weight": 2, "ends": false, "frame_skip": 3,
                             "xml_file": "./a.xml", "z_range": ["-inf", "inf"],
                             "main_body": 4, "state": ["qvel", "qpos"]})")
          .value();
  EXPECT_EQ(options.Number("weight", 0.5), 2);
  EXPECT_EQ(options.Bool("ends", true), false);
  EXPECT_EQ(options.Count("frame_skip", 5), 3u);
  EXPECT_EQ(options.Text("xml_file", "ant.xml"), "./a.xml");
  EXPECT_EQ(options.Range("z_range", {0, 1}), Pair(-kInf, kInf));
  EXPECT_EQ(options.TextOrIndex("main_body", "1"), "4");
  EXPECT_EQ(options.Names("state", {"qpos", "qvel"}),
            (std::vector<std::string>{"qvel", "qpos"}));
  EXPECT_TRUE(options.Finish().ok());
}

TEST(TaskOptions, RefusesOtherJsonThanObject) {
  for (const char* text : {"", "{", "[1]", "3", "{\"a\": 1,}", "nonsense"}) {
    EXPECT_EQ(CodeOf(TaskOptions::Parse(text).status()),
              ErrorCode::kInvalidArgument)
        << text;
  }
}

TEST(TaskOptions, NamesTheOptionTheExpectedAndTheFound) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({"weight": "a lot"})", "a lot"},
      {R"({"weight": -1})", "number from 0"},
      {R"({"weight": "inf"})", "finite"},
      {R"({"ends": 1})", "true or false"},
      {R"({"frame_skip": 0})", "integer"},
      {R"({"frame_skip": 2.5})", "2.5"},
      {R"({"frame_skip": 5000000000})", "5000000000"},
      {R"({"xml_file": 3})", "text"},
      {R"({"z_range": [1]})", "two numbers"},
      {R"({"z_range": [2, 1]})", "lower one first"},
      {R"({"main_body": -1})", "index"},
      {R"({"main_body": null})", "null"},
      {R"({"xml_file": "ant.xml\u0000x"})", "NUL"},
      {R"({"z_range": [[1], 2]})", "array of 2"},
      {R"({"z_range": {"low": 1}})", "object of 1"},
      {R"({"state": "qpos"})",
       "a list of names, none of them twice, out of qpos, qvel"},
      {R"({"state": ["qpos", "xpos"]})", "xpos"},
      {R"({"state": ["qpos", "qpos"]})", "none of them twice"},
  };
  for (const auto& [text, fact] : kWrong) {
    const absl::Status status = AskAll(TaskOptions::Parse(text).value());
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << text;
    EXPECT_TRUE(absl::StrContains(status.message(), fact)) << status;
  }
}

TEST(TaskOptions, NestingIsNoMatterOfTheStack) {
  constexpr size_t kDepth = 1'000'000;
  const std::string text = absl::StrCat(
      "{\"weight\": ", std::string(kDepth, '['), std::string(kDepth, ']'), "}");
  EXPECT_TRUE(absl::StrContains(
      AskAll(TaskOptions::Parse(text).value()).message(), "an array of 1"));
}

TEST(TaskOptions, ErrorGivesPositionOfInvalidJson) {
  EXPECT_TRUE(absl::StrContains(
      TaskOptions::Parse("{\"weight\": }").status().message(), "column 12"));
  EXPECT_TRUE(absl::StrContains(
      TaskOptions::Parse("{\"weight\": 1e400}").status().message(), "1e400"));
}

TEST(TaskOptions, AnUnknownOptionNamesTheKnownOnes) {
  const absl::Status status =
      AskAll(TaskOptions::Parse(R"({"wieght": 1})").value());
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "wieght")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "weight, xml_file"))
      << status;
}

}  // namespace
}  // namespace tandem
