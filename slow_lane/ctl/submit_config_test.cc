#include "slow_lane/ctl/submit_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "slow_lane/runs/run_config.h"

namespace tandem::slow_lane {
namespace {

SubmitCommand Running(const std::vector<std::string>& program) {
  SubmitCommand submit;
  submit.program = program;
  return submit;
}

// As the daemon understands it.
RunConfig Accepted(const SubmitCommand& submit) {
  const absl::StatusOr<RunConfig> config =
      ParseRunConfig(SubmitConfigJson(submit, "/bin/python", "/home/me"));
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(RunConfig());
}

TEST(SubmitConfig, SaysAllThatWasAskedFor) {
  SubmitCommand submit = Running({"python", "train.py", "--seed", "3"});
  submit.name = "ant";
  submit.gpus = 2;
  submit.environment = {{"A", "1"}, {"B", ""}, {"A", "2"}};
  submit.max_steps = 1000;
  submit.max_duration_secs = 5400;
  submit.step_stride = 10;
  const RunConfig config = Accepted(submit);
  EXPECT_EQ(config.run_name, "ant");
  EXPECT_EQ(config.entry_point, "/bin/python");
  EXPECT_EQ(config.arguments,
            (std::vector<std::string>{"train.py", "--seed", "3"}));
  EXPECT_EQ(config.environment,
            (std::map<std::string, std::string>{{"A", "2"}, {"B", ""}}));
  EXPECT_EQ(config.gpus_requested, 2u);
  EXPECT_TRUE(config.gpus_mandatory);
  EXPECT_EQ(config.max_steps, 1000u);
  EXPECT_EQ(config.max_duration_secs, 5400u);
  EXPECT_EQ(config.step_stride, 10u);
  EXPECT_EQ(config.working_directory, "/home/me");
}

TEST(SubmitConfig, LeavesTheRestToTheDaemon) {
  const RunConfig config = Accepted(Running({"python"}));
  EXPECT_EQ(config.gpus_requested, 0u);
  EXPECT_FALSE(config.gpus_mandatory);
  EXPECT_EQ(config.max_steps, std::nullopt);
  EXPECT_EQ(config.max_duration_secs, std::nullopt);
  EXPECT_EQ(config.step_stride, 1u);
}

TEST(SubmitConfig, ARunIsNamedAfterItsProgram) {
  EXPECT_EQ(Accepted(Running({"/usr/bin/python", "train.py"})).run_name,
            "python train.py");
  EXPECT_EQ(Accepted(Running({"sh", "-c", "a\nb"})).run_name, "sh -c a\\x0ab");
  EXPECT_EQ(Accepted(Running({"p", std::string(500, 'x')})).run_name.size(),
            120u);
}

TEST(SubmitConfig, BytesThatAreNoTextDoNotBreakIt) {
  EXPECT_EQ(Accepted(Running({"p", "\xff"})).arguments,
            std::vector<std::string>{"\xef\xbf\xbd"});
}

// What is said of a config's text; empty: nothing.
std::string Complaint(absl::string_view text) {
  return std::string(CheckUtf8(text, "run.json").message());
}

TEST(SubmitConfig, SaysWhereATextStopsToBeUtf8) {
  EXPECT_EQ(Complaint("{\"caf\xc3\xa9\": 1}"), "");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckUtf8("\xff", "-")));
  EXPECT_THAT(Complaint("{\"caf\xc3\xa9\": \"caf\xe9\"}"),
              testing::AllOf(testing::HasSubstr("0xe9"),
                             testing::HasSubstr("offset 14 of run.json"),
                             testing::HasSubstr("\nNext: ")));
  EXPECT_THAT(CheckUtf8("\xff", "-").message(),
              testing::HasSubstr("offset 0 of standard input"));
}

TEST(FindProgram, TakesTheFirstOnThePathThatMayBeExecuted) {
  const std::filesystem::path root =
      std::filesystem::path(std::getenv("TEST_TMPDIR")) / "path";
  for (const char* const folder : {"a", "b", "c"}) {
    std::filesystem::create_directories(root / folder);
  }
  std::ofstream(root / "a" / "train") << "";
  for (const char* const folder : {"b", "c"}) {
    std::ofstream(root / folder / "train") << "";
    ASSERT_EQ(chmod((root / folder / "train").c_str(), 0700), 0);
  }
  const std::string path = (root / "a").string() + ":" + (root / "b").string() +
                           ":" + (root / "c").string();
  EXPECT_EQ(FindProgram("train", path).value_or(""), root / "b" / "train");
  EXPECT_TRUE(absl::IsNotFound(FindProgram("b", root.string()).status()));
  EXPECT_TRUE(absl::IsNotFound(FindProgram("nonesuch", path).status()));
}

TEST(FindProgram, AProgramWithASlashIsTakenAsItIs) {
  EXPECT_EQ(FindProgram("./train", "").value_or(""), "./train");
}

}  // namespace
}  // namespace tandem::slow_lane
