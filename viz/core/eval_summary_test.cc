#include "viz/core/eval_summary.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

namespace tandem {
namespace {

constexpr char kWhole[] =
    R"({"batch_index": 3, "episodes": 30, "avg_return": 12.5,)"
    R"( "min_return": -1, "max_return": 20.25, "median_return": 12})";

std::string Path(const std::string& name) {
  return testing::TempDir() + "/eval_summary_test_" + name;
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

TEST(EvalSummary, ReadsMosaicsKeys) {
  EXPECT_EQ(ParseEvalSummary(kWhole), (EvalSummary{.batches = 3,
                                                   .episodes = 30,
                                                   .avg_return = 12.5,
                                                   .min_return = -1,
                                                   .max_return = 20.25}));
}

TEST(EvalSummary, TreatsMissingAsZeroAndNullAsNaN) {
  EXPECT_EQ(EvalSummaryText(*ParseEvalSummary(
                R"({"episodes": 2, "batch_index": null, "avg_return": null})")),
            "evaluation batch 0, 2 episodes\n"
            "return: avg nan, min 0.00, max 0.00");
}

TEST(EvalSummary, IgnoresHalfWrittenFile) {
  const std::string whole = kWhole;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(ParseEvalSummary(whole.substr(0, bytes)).has_value()) << bytes;
  }
}

TEST(EvalSummary, IgnoresOtherContent) {
  for (const char* odd : {"[]", "3", "null", R"({"episodes": "many"})", "\xff",
                          R"({"episodes": {}})"}) {
    EXPECT_FALSE(ParseEvalSummary(odd).has_value()) << odd;
  }
  EXPECT_EQ(ParseEvalSummary(R"({"episodes": -5, "batch_index": 1e300})"),
            EvalSummary{});
}

TEST(EvalSummary, ReadsDeeplyNestedJson) {
  EXPECT_FALSE(ParseEvalSummary(std::string(500'000, '[')).has_value());
}

TEST(EvalSummary, ReadsTheFileAgainEachTime) {
  const std::string path = Path("again.json");
  Write(path, kWhole);
  EXPECT_EQ(ReadEvalSummary(path)->batches, 3);
  Write(path, R"({"batch_index": 4})");
  EXPECT_EQ(ReadEvalSummary(path)->batches, 4);
  Write(path, R"({"batch_index": 5)");
  EXPECT_FALSE(ReadEvalSummary(path).has_value());
}

TEST(EvalSummary, IgnoresOtherFiles) {
  EXPECT_FALSE(ReadEvalSummary(Path("missing.json")).has_value());
  EXPECT_FALSE(ReadEvalSummary(testing::TempDir()).has_value());
  const std::string large = Path("large.json");
  Write(large, std::string(2 << 20, ' ') + kWhole);
  EXPECT_FALSE(ReadEvalSummary(large).has_value());
  const std::string pipe = Path("pipe.json");
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(ReadEvalSummary(pipe).has_value());
}

TEST(EvalSummary, FormatsTwoLines) {
  EXPECT_EQ(EvalSummaryText(*ParseEvalSummary(kWhole)),
            "evaluation batch 3, 30 episodes\n"
            "return: avg 12.50, min -1.00, max 20.25");
  EXPECT_EQ(DefaultEvalSummaryPath("a-b"),
            "var/trainer/runs/a-b/eval_summary.json");
}

}  // namespace
}  // namespace tandem
