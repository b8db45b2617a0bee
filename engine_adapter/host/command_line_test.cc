#include "engine_adapter/host/command_line.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/error.h"

ABSL_FLAG(int, test_number, 3, "a number");
ABSL_FLAG(bool, test_switch, false, "true: switched");
ABSL_FLAG(std::string, test_text, "", "a text");

namespace tandem {
namespace {

absl::StatusOr<CommandLine> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "server");
  return ParseCommandLine(static_cast<int>(words.size()), words.data());
}

void ExpectRefused(const std::vector<const char*>& words,
                   const std::string& naming) {
  const absl::Status status = Parse(words).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), naming)) << status;
}

TEST(CommandLine, TakesValuesInBothForms) {
  ASSERT_TRUE(Parse({"--test_number=5", "--test_text", "a=b"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 5);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "a=b");
  ASSERT_TRUE(Parse({"-test_number", "-6", "--test_text="}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), -6);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "");
}

TEST(CommandLine, TakesSwitchesWithoutAValue) {
  ASSERT_TRUE(Parse({"--test_switch"}).ok());
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));
  ASSERT_TRUE(Parse({"--notest_switch"}).ok());
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_switch));
  ASSERT_TRUE(Parse({"--test_switch=true"}).ok());
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));
}

std::string FileOf(const std::string& text) {
  const std::string path = testing::TempDir() + "/config.json";
  std::ofstream(path) << text;
  return path;
}

TEST(CommandLine, PrefersFlagsOnTheCommandLineToThoseInAFile) {
  const std::string path = FileOf(
      R"({"test_number": 7, "test_switch": true,
          "test_text": ["agent", "scene"]})");
  const std::string config = "--config=" + path;
  ASSERT_TRUE(Parse({"--test_number=8", config.c_str()}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 8);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "agent,scene");
  FileOf(R"({"test_text": {"healthy_reward": 2}})");
  ASSERT_TRUE(Parse({config.c_str()}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), R"({"healthy_reward":2})");
}

TEST(CommandLine, RefusesFileWithoutFlags) {
  const std::string path = testing::TempDir() + "/config.json";
  const std::string config = "--config=" + path;
  for (const char* const text :
       {"", "[1]", "{\"test_number\": }", "{\"test_nmber\": 1}",
        "{\"test_number\": \"many\"}", "{\"config\": \"x\"}",
        "{\"test_text\": \"a\\u0000b\"}"}) {
    FileOf(text);
    const absl::Status status = Parse({config.c_str()}).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << text;
    // The error does not offer flags that a file must not have.
    EXPECT_FALSE(absl::StrContains(status.message(), "--config ")) << status;
  }
  ExpectRefused({"--config=/no/such.json"}, "/no/such.json");
  ExpectRefused({"--config=/"}, "no readable file");  // a folder
  ASSERT_TRUE(Parse({"--config="}).ok());
}

TEST(CommandLine, TakesOwnFlagsFromWordsAndFiles) {
  double wheels = 4;
  double doors = 2;
  const std::vector<OwnFlag> own = {{.name = "wheels", .value = &wheels},
                                    {.name = "doors", .value = &doors}};
  const auto parse = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "server");
    return ParseCommandLine(static_cast<int>(words.size()), words.data(), own)
        .status();
  };
  const std::string config =
      "--config=" + FileOf(R"({"wheels": 3, "test_number": 7, "doors": 5})");
  ASSERT_TRUE(parse({config.c_str(), "--doors", "-1.5"}).ok());
  EXPECT_EQ(wheels, 3);
  EXPECT_EQ(doors, -1.5);
  ASSERT_TRUE(parse({config.c_str(), "--doors=2.5"}).ok());
  EXPECT_EQ(doors, 2.5);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 7);
  for (const absl::Status& status :
       {parse({"--config=", "--wheels=many"}), parse({"--wheels"})}) {
    EXPECT_TRUE(absl::StrContains(status.message(), "--wheels: expected a"))
        << status;
  }
  FileOf(R"({"wheel": 3})");
  for (const absl::Status& status :
       {parse({config.c_str()}), parse({"--config=", "--wheel=3"})}) {
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), "--wheels")) << status;
  }
  ASSERT_TRUE(Parse({"--config="}).ok());
}

TEST(CommandLine, RefusesUnknownFlags) {
  ExpectRefused({"--nonsense"}, "--nonsense");
  ExpectRefused({"--test_nmber=5"}, "--test_number");
  ExpectRefused({"word"}, "word");
  ExpectRefused({"--notest_number"}, "--notest_number");
  ExpectRefused({"--flagfile=x"}, "--flagfile");  // a flag of Abseil
  ExpectRefused({"--"}, "--");
}

TEST(CommandLine, RefusesBadAndMissingValues) {
  ExpectRefused({"--test_number=many"}, "many");
  ExpectRefused({"--test_number"}, "no value");
}

TEST(CommandLine, HelpGoesBeforeErrors) {
  const absl::StatusOr<CommandLine> line = Parse({"--nonsense", "--help"});
  ASSERT_TRUE(line.ok());
  EXPECT_TRUE(line->help_wanted);
}

TEST(CommandLine, HelpListsFlagsWithTheirDefaults) {
  const std::string text = HelpText("What it is.");
  EXPECT_TRUE(absl::StartsWith(text, "What it is."));
  EXPECT_TRUE(absl::StrContains(text,
                                "--test_number\n      a number\n"
                                "      default: 3\n"));
  EXPECT_FALSE(absl::StrContains(text, "--flagfile"));
}

}  // namespace
}  // namespace tandem
