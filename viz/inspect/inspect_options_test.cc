#include "viz/inspect/inspect_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "base/error.h"

namespace tandem {
namespace {

using What = InspectOptions::What;

InspectOptions Parse(std::vector<absl::string_view> words) {
  const absl::FlagSaver saver;  // Each call begins with the defaults.
  absl::StatusOr<InspectOptions> options = ParseInspectOptions(words);
  EXPECT_TRUE(options.ok()) << options.status();
  return *std::move(options);
}

TEST(InspectOptions, ANameIsARegion) {
  const InspectOptions options = Parse({"demo"});
  EXPECT_EQ(options.what, What::kOne);
  EXPECT_EQ(options.name, "demo");
  EXPECT_FALSE(options.watch);
  EXPECT_FALSE(options.json);
}

TEST(InspectOptions, AcceptsFlagsAnywhere) {
  const InspectOptions options = Parse({"--json", "demo", "--watch"});
  EXPECT_EQ(options.name, "demo");
  EXPECT_TRUE(options.watch);
  EXPECT_TRUE(options.json);
}

TEST(InspectOptions, ListIsACommandAndANameAfterDashes) {
  EXPECT_EQ(Parse({"list", "--json"}).what, What::kList);
  EXPECT_EQ(Parse({"--", "list"}).what, What::kOne);
  EXPECT_EQ(Parse({"--", "list"}).name, "list");
  EXPECT_EQ(Parse({"--", "--json"}).name, "--json");
}

TEST(InspectOptions, HelpPrecedesOtherOptions) {
  EXPECT_EQ(Parse({"--nonsense", "--help"}).what, What::kHelp);
  EXPECT_EQ(Parse({"-h"}).what, What::kHelp);
}

TEST(InspectOptions, ServicesAreLists) {
  const InspectOptions options =
      Parse({"demo", "--enable=camera,scene", "--disable", "debug"});
  EXPECT_EQ(options.enable, (std::vector<std::string>{"camera", "scene"}));
  EXPECT_EQ(options.disable, std::vector<std::string>{"debug"});
}

TEST(InspectOptions, RefusesUnknownOptions) {
  for (const std::vector<absl::string_view>& words :
       std::vector<std::vector<absl::string_view>>{
           {},
           {"--watch"},
           {"a", "b"},
           {"a", "--nonsense"},
           {"list", "a"},
           {"list", "--enable=camera"},
           {"a", "--watch", "--enable=camera"},
           {"a", "--enable=camra"},
           {"a", "--enable=camera", "--disable=scene,camera"}}) {
    const absl::FlagSaver saver;
    EXPECT_EQ(CodeOf(ParseInspectOptions(words).status()),
              ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tandem
