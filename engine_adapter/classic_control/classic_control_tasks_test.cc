#include "engine_adapter/classic_control/classic_control_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

TEST(ClassicControlTasks, AreInAlphabeticalOrderAndCanBeMade) {
  const std::vector<std::string> tasks = ClassicControlTasks();
  EXPECT_EQ(tasks.size(), 2);
  EXPECT_TRUE(std::is_sorted(tasks.begin(), tasks.end()));
  for (const std::string& task : tasks) {
    const absl::StatusOr<std::unique_ptr<Engine>> engine =
        MakeClassicControlEngine(task, {.num_envs = 3, .threads = 2});
    ASSERT_TRUE(engine.ok()) << engine.status();
    EXPECT_EQ((*engine)->schema().task, task);
    EXPECT_EQ((*engine)->schema().num_envs, 3);
  }
}

TEST(ClassicControlTasks, NameEveryObservationAndAction) {
  for (const std::string& task : ClassicControlTasks()) {
    const auto engine = MakeClassicControlEngine(task, {}).value();
    const EngineSchema& schema = engine->schema();
    const std::set<std::string> names(schema.observation_names.begin(),
                                      schema.observation_names.end());
    EXPECT_EQ(schema.observation_names.size(), schema.obs_size) << task;
    EXPECT_EQ(names.size(), schema.obs_size) << task;
    EXPECT_EQ(schema.action_names.size(), schema.act_size) << task;
  }
}

TEST(ClassicControlTasks, RefuseAnUnknownTaskAndNameTheKnown) {
  const absl::Status status =
      MakeClassicControlEngine("CartPole-v7", {}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  for (const char* fact : {"CartPole-v1", "Pendulum-v1", "'CartPole-v7'"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), fact)) << status;
  }
}

TEST(ClassicControlTasks, RefuseAnUnknownOptionAndNameTheKnown) {
  for (const auto& [task, known] :
       {std::pair{"CartPole-v1", "sutton_barto_reward"},
        std::pair{"Pendulum-v1", "expected one of g,"}}) {
    TaskRequest request;
    request.options = TaskOptions::Parse(R"({"render_mode": "human"})").value();
    const absl::Status status =
        MakeClassicControlEngine(task, std::move(request)).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    for (const char* fact : {known, "'render_mode'"}) {
      EXPECT_TRUE(absl::StrContains(status.message(), fact)) << status;
    }
  }
}

}  // namespace
}  // namespace tandem
