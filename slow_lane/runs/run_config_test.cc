#include "slow_lane/runs/run_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tandem::slow_lane {
namespace {

using nlohmann::json;

json Smallest() {
  return {{"run_name", "half_cheetah"},
          {"entry_point", "python3"},
          {"arguments", json::array()},
          {"environment", json::object()},
          {"resources",
           {{"cpus", 1}, {"memory_mb", 256}, {"gpus", {{"requested", 0}}}}},
          {"artifacts", json::object()}};
}

json Largest() {
  json config = Smallest();
  config["arguments"] = {"-m", "worker", "--name=\u00e9", ""};
  config["environment"] = {{"MUJOCO_GL", "egl"}, {"EMPTY", ""}};
  config["resources"] = {{"cpus", 8},
                         {"memory_mb", 4096},
                         {"gpus", {{"requested", 2}, {"mandatory", true}}}};
  config["artifacts"] = {{"output_prefix", "out/here"},
                         {"persist_logs", false},
                         {"keep_checkpoints", false}};
  config["metadata"] = {
      {"tandem",
       {{"working_directory", "/tmp"},
        {"step_stride", 10},
        {"enforce_resources", true},
        {"fast_lane",
         {{"only", true},
          {"slot", 3},
          {"video_mode", "single"},
          {"grid_limit", 9}}}}},
      {"worker", {{"worker_id", "w1"}, {"module", "x"}, {"config", {1, 2}}}},
      {"ui", {{"anything", {nullptr, 1.5}}}}};
  config["schedule"] = {{"max_duration_seconds", 60}, {"max_steps", 1000}};
  return config;
}

json OnRay() {
  json config = Smallest();
  config["metadata"]["tandem"]["ray"] = {
      {"address", "http://head:8265"},
      {"resources", {{"CPU", 4}, {"simulation", 0.5}}}};
  return config;
}

absl::StatusOr<RunConfig> Parse(const json& config) {
  return ParseRunConfig(config.dump());
}

// Returns the text of the refusal.
std::string Problem(const json& config) {
  const auto parsed = Parse(config);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
      << config;
  return std::string(parsed.status().message());
}

void ExpectFacts(const std::string& text,
                 std::initializer_list<const char*> facts) {
  for (const char* fact : facts) {
    EXPECT_NE(text.find(fact), std::string::npos) << fact << " in: " << text;
  }
}

TEST(ParseRunConfig, FillsInDefaults) {
  const auto config = Parse(Smallest());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->run_name, "half_cheetah");
  EXPECT_EQ(config->entry_point, "python3");
  EXPECT_FALSE(config->gpus_mandatory);
  EXPECT_TRUE(config->persist_logs);
  EXPECT_EQ(config->max_steps, std::nullopt);
  EXPECT_EQ(config->max_duration_secs, std::nullopt);
  EXPECT_EQ(config->working_directory, std::nullopt);
  EXPECT_EQ(config->worker_id, std::nullopt);
  EXPECT_EQ(config->step_stride, 1u);
  EXPECT_FALSE(config->enforce_resources);
  EXPECT_TRUE(config->keep_checkpoints);
  EXPECT_TRUE(config->fast_lane.empty());
  EXPECT_EQ(config->canonical_json,
            R"({"arguments":[],"artifacts":{"keep_checkpoints":true,)"
            R"("persist_logs":true},"entry_point":"python3","environment":{},)"
            R"("metadata":{},"resources":{"cpus":1,"gpus":{"mandatory":false,)"
            R"("requested":0},"memory_mb":256},"run_name":"half_cheetah",)"
            R"("schedule":{}})");
}

TEST(ParseRunConfig, ReadsEverything) {
  const auto config = Parse(Largest());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->arguments,
            (std::vector<std::string>{"-m", "worker", "--name=\u00e9", ""}));
  EXPECT_EQ(config->environment, (std::map<std::string, std::string>{
                                     {"EMPTY", ""}, {"MUJOCO_GL", "egl"}}));
  EXPECT_EQ(config->gpus_requested, 2u);
  EXPECT_TRUE(config->gpus_mandatory);
  EXPECT_FALSE(config->persist_logs);
  EXPECT_EQ(config->max_duration_secs, 60u);
  EXPECT_EQ(config->max_steps, 1000u);
  EXPECT_EQ(config->working_directory, "/tmp");
  EXPECT_EQ(config->step_stride, 10u);
  EXPECT_TRUE(config->enforce_resources);
  EXPECT_EQ(config->cpus, 8u);
  EXPECT_EQ(config->memory_mb, 4096u);
  EXPECT_FALSE(config->keep_checkpoints);
  EXPECT_EQ(config->fast_lane, (std::map<std::string, std::string>{
                                   {"MOSAIC_FASTLANE_ONLY", "1"},
                                   {"MOSAIC_FASTLANE_SLOT", "3"},
                                   {"MOSAIC_FASTLANE_VIDEO_MODE", "single"},
                                   {"MOSAIC_FASTLANE_GRID_LIMIT", "9"}}));
  EXPECT_EQ(config->worker_id, "w1");
  const json canonical = json::parse(config->canonical_json);
  EXPECT_EQ(canonical["resources"]["cpus"], 8);
  EXPECT_EQ(canonical["resources"]["memory_mb"], 4096);
  EXPECT_EQ(canonical["artifacts"]["output_prefix"], "out/here");
  EXPECT_EQ(canonical["artifacts"]["keep_checkpoints"], false);
}

TEST(ParseRunConfig, AnEmptyFastLaneHasMosaicsDefaults) {
  json config = Smallest();
  config["metadata"]["tandem"]["fast_lane"] = json::object();
  const auto parsed = Parse(config);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(
      parsed->fast_lane,
      (std::map<std::string, std::string>{{"MOSAIC_FASTLANE_ONLY", "0"}}));
}

TEST(ParseRunConfig, ReadsWhetherTheWorkerRunsOnRay) {
  EXPECT_FALSE(Parse(Largest())->on_ray);
  const auto parsed = Parse(OnRay());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->on_ray);
  json config = OnRay();
  config["metadata"]["tandem"]["ray"].erase("resources");
  EXPECT_TRUE(Parse(config).ok());
  config["metadata"]["tandem"]["ray"].erase("address");
  ExpectFacts(Problem(config), {"metadata.tandem.ray.address", "nothing"});
}

TEST(ParseRunConfig, RefusesWrongValuesOfRay) {
  const std::pair<const char*, json> kWrong[] = {
      {"/metadata/tandem/ray", "http://head:8265"},
      {"/metadata/tandem/ray/address", ""},
      {"/metadata/tandem/ray/adress", "http://head:8265"},
      {"/metadata/tandem/ray/resources", json::array({4})},
      {"/metadata/tandem/ray/resources/CPU", "4"},
      {"/metadata/tandem/ray/resources/CPU", 0},
      {"/metadata/tandem/ray/resources/CPU", -1},
      {"/resources/gpus/requested", 1},
      {"/metadata/tandem/enforce_resources", true},
      {"/schedule/max_duration_seconds", 60},
  };
  for (const auto& [path, value] : kWrong) {
    json config = OnRay();
    const json::json_pointer pointer(path);
    config[pointer] = value;
    ExpectFacts(Problem(config),
                {pointer.back().c_str(), "expected", "found", "1 problem:"});
  }
}

TEST(ParseRunConfig, GivesTheSameCanonicalTextAgain) {
  for (const json& given : {Smallest(), Largest(), OnRay()}) {
    const auto once = Parse(given);
    ASSERT_TRUE(once.ok()) << once.status();
    const auto twice = ParseRunConfig(once->canonical_json);
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_EQ(twice->canonical_json, once->canonical_json);
    EXPECT_EQ(twice->digest, once->digest);
    // Unread parts are kept.
    if (given.contains("metadata")) {
      EXPECT_EQ(json::parse(once->canonical_json)["metadata"],
                given["metadata"]);
    }
  }
}

TEST(ParseRunConfig, DigestIgnoresSpelling) {
  const auto one = ParseRunConfig(Largest().dump(4));
  const auto other = ParseRunConfig(Largest().dump());
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->digest, other->digest);
  json changed = Largest();
  changed["run_name"] = "another";
  EXPECT_NE(Parse(changed)->digest, one->digest);
}

TEST(ParseRunConfig, DigestIsTheSha256OfTheCanonicalText) {
  const auto config = Parse(Smallest());
  ASSERT_TRUE(config.ok());
  // printf '%s' TEXT | sha256sum
  EXPECT_EQ(config->digest,
            "5adde1af035c99bee8a5cb06e92f76efcee5bbc001e7518fa9903d7475715c7b");
}

TEST(ParseRunConfig, TakesMosaicsEmptyValues) {
  json config = Smallest();
  config["artifacts"]["output_prefix"] = nullptr;
  config["metadata"]["worker"]["worker_id"] = nullptr;
  config["resources"]["cpus"] = 4.0;
  const auto parsed = Parse(config);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const json canonical = json::parse(parsed->canonical_json);
  EXPECT_FALSE(canonical["artifacts"].contains("output_prefix"));
  EXPECT_EQ(parsed->worker_id, std::nullopt);
  EXPECT_EQ(canonical["resources"]["cpus"].dump(), "4");
  config["metadata"]["worker"]["worker_id"] = "";
  EXPECT_TRUE(Parse(config).ok());
  config["metadata"]["worker"] = "some text";
  EXPECT_TRUE(Parse(config).ok());
}

TEST(ParseRunConfig, RefusesEachMissingRequiredKey) {
  for (const char* path :
       {"/run_name", "/entry_point", "/arguments", "/environment", "/resources",
        "/resources/cpus", "/resources/memory_mb", "/resources/gpus",
        "/resources/gpus/requested", "/artifacts"}) {
    json config = Smallest();
    const json::json_pointer pointer(path);
    config[pointer.parent_pointer()].erase(pointer.back());
    ExpectFacts(Problem(config), {pointer.back().c_str(), "found nothing"});
  }
}

TEST(ParseRunConfig, RefusesUnknownKeysAtEachLevel) {
  for (const char* path : {"", "/resources", "/resources/gpus", "/artifacts",
                           "/schedule", "/metadata/tandem"}) {
    json config = Largest();
    config[json::json_pointer(path)]["run_nmae"] = 1;
    ExpectFacts(Problem(config), {"'run_nmae'", "expected only"});
  }
}

TEST(ParseRunConfig, EscapesControlCharactersInItsText) {
  json config = Smallest();
  config["arguments"] = {std::string("a\0b", 3)};
  config["environment"] = {{std::string("C\0D", 3), "x"},
                           {"E\x1b[31m", std::string("f\0\u202eg", 6)}};
  const std::string text = Problem(config);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  ExpectFacts(text, {"3 problems", "'a\\x00b'", "'C\\x00D'",
                     "environment.E\\x1b[31m", "'f\\x00\\xe2\\x80\\xaeg'"});
}

TEST(ParseRunConfig, RefusesValuesBeyondTheirLimits) {
  const std::pair<const char*, json> kWrong[] = {
      {"/run_name", ""},
      {"/run_name", std::string(121, 'x')},
      {"/run_name", 7},
      {"/run_name", nullptr},
      {"/entry_point", ""},
      {"/entry_point", std::string("a\0b", 3)},
      {"/arguments", "text"},
      {"/arguments", {{"a", 1}}},
      {"/arguments", {"fine", 1}},
      {"/arguments", {std::string("a\0b", 3)}},
      {"/environment", json::array()},
      {"/environment", {{"A", 1}}},
      {"/environment", {{"", "x"}}},
      {"/environment", {{"A=B", "x"}}},
      {"/environment", {{"TANDEM_RUN_TOKEN", "x"}}},
      {"/environment", {{"A", std::string("a\0b", 3)}}},
      {"/resources", json::array()},
      {"/resources/cpus", 0},
      {"/resources/cpus", -1},
      {"/resources/cpus", 1.5},
      {"/resources/cpus", "4"},
      {"/resources/cpus", true},
      {"/resources/cpus", 18446744073709551615u},
      {"/resources/cpus", 1e300},
      {"/resources/memory_mb", 255},
      {"/resources/gpus", 1},
      {"/resources/gpus/requested", 9},
      {"/resources/gpus/requested", -1},
      {"/resources/gpus/mandatory", 1},
      {"/artifacts", nullptr},
      {"/artifacts/output_prefix", ""},
      {"/artifacts/persist_logs", "yes"},
      {"/artifacts/keep_checkpoints", nullptr},
      {"/metadata", json::array()},
      {"/metadata/tandem", 1},
      {"/metadata/tandem/working_directory", "relative"},
      {"/metadata/tandem/working_directory", 1},
      {"/metadata/tandem/step_stride", 0},
      {"/metadata/tandem/enforce_resources", "yes"},
      {"/metadata/tandem/fast_lane", true},
      {"/metadata/tandem/fast_lane/only", 1},
      {"/metadata/tandem/fast_lane/slot", -1},
      {"/metadata/tandem/fast_lane/video_mode", "film"},
      {"/metadata/tandem/fast_lane/grid_limit", 0},
      {"/metadata/worker/worker_id", 5},
      {"/schedule", nullptr},
      {"/schedule/max_steps", 0},
      {"/schedule/max_duration_seconds", 0},
  };
  for (const auto& [path, value] : kWrong) {
    json config = Largest();
    const json::json_pointer pointer(path);
    config[pointer] = value;
    ExpectFacts(Problem(config),
                {pointer.back().c_str(), "expected", "found", "1 problem:"});
  }
}

TEST(ParseRunConfig, CountsCharactersOfTheName) {
  json config = Smallest();
  std::string name;
  for (int i = 0; i < 120; ++i) name += "\u00e9";
  config["run_name"] = name;
  EXPECT_TRUE(Parse(config).ok());
  config["run_name"] = name + "x";
  ExpectFacts(Problem(config), {"run_name", "120"});
}

TEST(ParseRunConfig, NamesAllProblemsAtOnce) {
  json config = Smallest();
  config["run_name"] = "";
  config["arguments"] = {"fine", 1, nullptr};
  config["resources"]["gpus"]["requested"] = 9;
  config["extra"] = 1;
  ExpectFacts(Problem(config),
              {"5 problems", "run_name", "arguments[1]", "found 1",
               "arguments[2]", "found null", "resources.gpus.requested",
               "from 0 to 8", "found 9", "'extra'"});
}

TEST(ParseRunConfig, LimitsTheNumberOfProblemsShown) {
  json config = Smallest();
  for (int i = 0; i < 100'000; ++i) config["arguments"].push_back(i);
  const std::string text = Problem(config);
  ExpectFacts(text, {"100000 problems", "and 99980 more"});
  EXPECT_LT(text.size(), 4096u);
}

TEST(ParseRunConfig, RefusesValuesOtherThanObjects) {
  for (const char* text :
       {"", "{", "[]", "1", "null", "\"x\"", "{\"run_name\": \"\xff\"}",
        "{\"a\": 1e999}", "{} {}", "{\"a\":\"\\ud800\"}"}) {
    const auto parsed = ParseRunConfig(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(ParseSubmittedConfig, RefusesAConfigThatIsTooLarge) {
  json config = Smallest();
  config["metadata"]["x"] = "";
  const size_t without = ParseRunConfig(config.dump())->canonical_json.size();
  config["metadata"]["x"] = std::string(kMaxConfigBytes - without, 'x');
  const auto largest = ParseSubmittedConfig(config.dump());
  ASSERT_EQ(largest.status(), absl::OkStatus());
  EXPECT_EQ(largest->canonical_json.size(), kMaxConfigBytes);
  // The stored text can be read again.
  EXPECT_EQ(ParseRunConfig(largest->canonical_json).status(), absl::OkStatus());
  config["metadata"]["x"] = std::string(kMaxConfigBytes - without + 1, 'x');
  for (const std::string& text :
       {config.dump(), Smallest().dump() + std::string(kMaxConfigBytes, ' ')}) {
    const auto parsed = ParseSubmittedConfig(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    ExpectFacts(std::string(parsed.status().message()),
                {"4194304", "bytes, found 4194"});
  }
}

TEST(ParseRunConfig, RefusesBottomlessNesting) {
  for (const size_t depth : {100u, 2'000'000u}) {
    std::string text = Smallest().dump();
    text.pop_back();
    absl::StrAppend(&text, ",\"metadata\":{\"x\":", std::string(depth, '['),
                    std::string(depth, ']'), "}}");
    const auto parsed = ParseRunConfig(text);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    ExpectFacts(std::string(parsed.status().message()), {"deep"});
  }
}

}  // namespace
}  // namespace tandem::slow_lane
