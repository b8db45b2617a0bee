#include "viz/core/viewer_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "viz/core/key_map.h"

namespace tandem {
namespace {

absl::StatusOr<ViewerOptions> Parse(std::vector<absl::string_view> words) {
  const absl::FlagSaver saver;  // Each call begins with the defaults.
  return ParseViewerOptions(words);
}

TEST(ViewerOptions, HaveTheSeedsDefaults) {
  const absl::StatusOr<ViewerOptions> options = Parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->mode_label, "Fast lane");
  EXPECT_EQ(ValueOf(options->run_modes, 0), "");
  EXPECT_TRUE(options->shortcuts);
  EXPECT_TRUE(options->runs.empty());
}

TEST(ViewerOptions, TakeValuesInBothSpellings) {
  const absl::StatusOr<ViewerOptions> options =
      Parse({"--run=a", "--run", "b", "--run_mode=policy_eval", "--theme",
             "light", "--size=640x480", "--shortcuts=false", "--image_only",
             "--offscreen", "--snapshot", "x.png", "--after=5"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->runs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ValueOf(options->run_modes, 1), "policy_eval");
  EXPECT_FALSE(options->dark);
  EXPECT_EQ(options->width, 640u);
  EXPECT_EQ(options->height, 480u);
  EXPECT_FALSE(options->shortcuts);
  EXPECT_TRUE(options->image_only);
  EXPECT_TRUE(options->offscreen);
  EXPECT_EQ(options->snapshot, "x.png");
  EXPECT_EQ(options->after, 5);
  EXPECT_FALSE(Parse({"--noshortcuts"})->shortcuts);
}

TEST(ViewerOptions, ValuesMayBeOfEachRunInTurn) {
  const absl::StatusOr<ViewerOptions> options =
      Parse({"--run=a", "--agent_id=walker", "--run_mode=train", "--run=b",
             "--agent_id=cheetah", "--run_mode=policy_eval"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(ValueOf(options->agent_ids, 0), "walker");
  EXPECT_EQ(ValueOf(options->agent_ids, 1), "cheetah");
  EXPECT_EQ(ValueOf(options->agent_ids, 2), "");  // a tab opened later
  EXPECT_EQ(ValueOf(options->run_modes, 1), "policy_eval");
}

TEST(ViewerOptions, RefuseUnknownOptions) {
  for (const std::vector<absl::string_view>& words :
       std::vector<std::vector<absl::string_view>>{
           {"--nope"},
           {"word"},
           {"--run"},
           {"--run="},
           {"--norun"},
           {"--run_mode=play"},
           {"--run=a", "--agent_id=x", "--agent_id=y"},
           {"--theme=blue"},
           {"--size=640"},
           {"--size=1x1"},
           {"--size=640x480x3"},
           {"--after=0"},
           {"--after=x"},
           {"--timeout=nan"},
           {"--shortcuts=maybe"},
           {"--offscreen"},
           {"--daemon", "--daemon_target="}}) {
    const absl::StatusOr<ViewerOptions> options = Parse(words);
    ASSERT_FALSE(options.ok()) << words[0];
    EXPECT_EQ(CodeOf(options.status()), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(options.status().message(), "expected"));
  }
}

TEST(ViewerOptions, StartsADaemonExceptForASnapshot) {
  EXPECT_TRUE(Parse({"--snapshot="})->daemon.by_default);
  EXPECT_FALSE(Parse({"--snapshot=x.png"})->daemon.by_default);
  EXPECT_EQ(Parse({"--nodaemon"})->daemon.flag, false);
  EXPECT_EQ(Parse({"--daemon"})->daemon.flag, true);
}

TEST(ViewerOptions, HelpPrecedesOtherOptions) {
  const absl::StatusOr<ViewerOptions> options = Parse({"--nope", "--help"});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->help_wanted);
}

TEST(ViewerOptions, HelpHasLinesThatFitATerminal) {
  const std::string help = ViewerHelp();
  size_t start = 0;
  for (size_t end; (end = help.find('\n', start)) != std::string::npos;
       start = end + 1) {
    EXPECT_LE(end - start, 90u) << help.substr(start, end - start);
  }
  EXPECT_TRUE(absl::StrContains(help, "--eval_summary\n      FILE"));
  EXPECT_TRUE(absl::StrContains(help, KeyHelpText(2)));
}

}  // namespace
}  // namespace tandem
