#include "engine_adapter/task_description.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

TEST(TaskDescription, ByDefaultIsUnboundedFloatsWithoutInfos) {
  EXPECT_EQ(
      ToJson({}, 3, 2).value(),
      R"({"action_space":{"dtype":"float32","high":["inf"],"low":["-inf"],)"
      R"("shape":[2],"type":"Box"},"infos":[],"max_episode_steps":0,)"
      R"("observation_space":{"dtype":"float32","high":["inf"],)"
      R"("low":["-inf"],"shape":[3],"type":"Box"}})");
}

TEST(TaskDescription, LeavesOutSpacesThatAreInFields) {
  EXPECT_EQ(ToJson({}, 0, 0).value(), R"({"infos":[],"max_episode_steps":0})");
  EXPECT_EQ(
      CodeOf(ToJson({.action_space = DiscreteSpace{.n = 2}}, 0, 0).status()),
      ErrorCode::kInvalidArgument);
}

TEST(TaskDescription, SaysThatItHasNoRewards) {
  const std::string text = ToJson({.has_rewards = false}, 0, 0).value();
  EXPECT_EQ(text, R"({"has_rewards":false,"infos":[],"max_episode_steps":0})");
  EXPECT_FALSE(TaskDescriptionFrom(text, 0, 0).value().has_rewards);
  EXPECT_TRUE(TaskDescriptionFrom("{}", 0, 0).value().has_rewards);
  EXPECT_EQ(CodeOf(TaskDescriptionFrom(R"({"has_rewards": 0})", 0, 0).status()),
            ErrorCode::kInvalidArgument);
}

TEST(TaskDescription, HasAllFields) {
  const TaskDescription description = {
      .observation_space =
          BoxSpace{
              .low = {-1, 0.5}, .high = {1, 2}, .type = NumberType::kFloat64},
      .action_space = DiscreteSpace{.n = 2},
      .max_episode_steps = 500,
      .infos = {{.name = "x_position", .at_reset = true},
                {.name = "tendon_length", .length = 2},
                {.name = "reward", .type = NumberType::kInt64}}};
  EXPECT_EQ(InfoSize(description), 4u);
  EXPECT_EQ(
      ToJson(description, 2, 1).value(),
      R"({"action_space":{"n":2,"type":"Discrete"},"infos":[)"
      R"({"at_reset":true,"dtype":"float64","length":null,)"
      R"("name":"x_position"},)"
      R"({"at_reset":false,"dtype":"float64","length":2,)"
      R"("name":"tendon_length"},)"
      R"({"at_reset":false,"dtype":"int64","length":null,"name":"reward"}],)"
      R"("max_episode_steps":500,"observation_space":{"dtype":"float64",)"
      R"("high":[1.0,2.0],"low":[-1.0,0.5],"shape":[2],"type":"Box"}})");
}

TEST(TaskDescription, RefusesSpacesOfAnotherSizeAndInfosOfOneName) {
  const auto code = [](const TaskDescription& description, uint32_t obs_size,
                       uint32_t act_size) {
    return CodeOf(ToJson(description, obs_size, act_size).status());
  };
  EXPECT_EQ(code({.observation_space = {.low = {0, 0}}}, 3, 1),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.action_space = DiscreteSpace{.n = 2}}, 3, 2),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.action_space = DiscreteSpace{.n = 0}}, 3, 1),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.infos = {{.name = "a"}, {.name = "a"}}}, 3, 1),
            ErrorCode::kInvalidArgument);
}

TEST(TaskDescription, RefusesBoundsThatAreNoRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [](const TaskDescription& description,
                         const std::string& field) {
    const absl::Status status = ToJson(description, 3, 2).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), field)) << status;
  };
  expect({.observation_space = {.low = {0, nan, 0}}},
         "observation_space.low[1]: ");
  expect({.action_space = BoxSpace{.low = {2}, .high = {3, 1}}},
         "action_space.low[1]: expected at most the high 1, found 2");
  expect({.action_space = BoxSpace{.high = {1, 2, 3}}}, "action_space.high: ");
  expect({.action_space = BoxSpace{.low = {}}}, "action_space.low: ");
  EXPECT_TRUE(
      ToJson({.action_space = BoxSpace{.low = {1}, .high = {1}}}, 3, 2).ok());
}

TEST(TaskDescription, ReadsWhatItWrites) {
  const std::string json =
      ToJson({.observation_space = {.low = {-1, 0.5}, .high = {1, 2}},
              .action_space = DiscreteSpace{.n = 2},
              .max_episode_steps = 500,
              .infos = {{.name = "x", .length = 2, .at_reset = true},
                        {.name = "y", .type = NumberType::kInt64}}},
             2, 1)
          .value();
  const auto read = TaskDescriptionFrom(json, 2, 1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read, 2, 1).value(), json);
  const std::string plain = ToJson({}, 3, 2).value();
  EXPECT_EQ(ToJson(TaskDescriptionFrom("{}", 3, 2).value(), 3, 2).value(),
            plain);
  EXPECT_EQ(ToJson(TaskDescriptionFrom(plain, 3, 2).value(), 3, 2).value(),
            plain);
}

TEST(TaskDescription, KeepsTheSpacesOfFields) {
  const std::string json =
      ToJson({.observation_fields = R"({"type": "Dict", "spaces": []})",
              .action_fields = R"({"type": "Discrete", "n": 3})"},
             0, 0)
          .value();
  EXPECT_TRUE(absl::StrContains(json, "Dict")) << json;
  const auto read = TaskDescriptionFrom(json, 0, 0);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read, 0, 0).value(), json);
  // Float32 rows have a space of their own.
  EXPECT_FALSE(absl::StrContains(ToJson(*read, 2, 2).value(), "Dict"));
  EXPECT_EQ(CodeOf(ToJson({.action_fields = "{"}, 1, 0).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      CodeOf(TaskDescriptionFrom(R"({"action_space": 3})", 1, 0).status()),
      ErrorCode::kInvalidArgument);
}

TEST(TaskDescription, RefusesOtherJson) {
  for (const char* text :
       {"", "[", "[]", "3", R"({"actionspace": {}})",
        R"({"action_space": {"type": "Text"}})",
        R"({"action_space": {"type": "Box", "shape": [3]}})",
        R"({"action_space": {"type": "Box", "low": "x"}})",
        R"({"action_space": {"type": "Box", "dtype": "int8"}})",
        R"({"observation_space": {"type": "Discrete", "n": 2}})",
        R"({"max_episode_steps": -1})", R"({"max_episode_steps": 2.7})",
        R"({"action_space": {"type": "Discrete", "n": 1e300}})",
        R"({"infos": [{"name": "a", "length": -1}]})",
        R"({"infos": [{"name": "a", "length": 16777216}, {"name": "b"}]})",
        R"({"infos": [{}]})", R"({"infos": [{"name": "a", "size": 2}]})"}) {
    EXPECT_EQ(CodeOf(TaskDescriptionFrom(text, 1, 1).status()),
              ErrorCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace tandem
