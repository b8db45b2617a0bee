// tandem-conformance: checks an engine's program by all rules (*_rules.cc).
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/os/stop_signals.h"
#include "base/printable.h"
#include "base/quoted.h"
#include "engine_adapter/conformance/engine_facts.h"
#include "engine_adapter/conformance/server_process.h"
#include "engine_adapter/conformance/suite_arguments.h"

namespace tandem {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadUsage = 2;

// Returns "Steps.AStepStepsEveryEnvironment".
std::string NameOf(const testing::TestInfo& rule) {
  return absl::StrCat(rule.test_suite_name(), ".", rule.name());
}

// Prints a line for each rule, and counts.
class RuleReport final : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& rule) override {
    const testing::TestResult& result = *rule.result();
    const bool failed = result.Failed();
    const bool skipped = !failed && result.Skipped();
    ++(failed ? failed_ : skipped ? skipped_ : passed_);
    std::cout << (failed    ? "FAILED   "
                  : skipped ? "skipped  "
                            : "ok       ")
              << NameOf(rule);
    for (int i = 0; i < result.total_part_count(); ++i) {
      const testing::TestPartResult& part = result.GetTestPartResult(i);
      const std::string text =
          PrintableLines(absl::StripAsciiWhitespace(part.message()));
      if (!failed) {
        std::cout << ": " << text;
        continue;
      }
      const absl::string_view file =
          part.file_name() != nullptr ? part.file_name() : "";
      std::cout << "\n    " << absl::StrReplaceAll(text, {{"\n", "\n    "}})
                << "\n    (" << file.substr(file.rfind('/') + 1) << ":"
                << part.line_number() << ")";
    }
    std::cout << std::endl;
  }

  std::string Totals() const {
    return absl::StrCat(passed_, " passed, ", failed_, " failed, ", skipped_,
                        " skipped");
  }

 private:
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
};

// Ends a rule at its first fatal failure, also in a helper function: the rule
// would go on without a client.
class EndsRule : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.fatally_failed()) throw testing::AssertionException(result);
  }
};

int Report(const absl::Status& status) {
  std::cerr << "tandem-conformance: " << status.message() << "\n";
  return CodeOf(status) == ErrorCode::kInvalidArgument ? kExitBadUsage
                                                       : kExitFailed;
}

// Returns the rules whose names contain --filter.
std::vector<std::string> WantedRules() {
  std::vector<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& group = *all.GetTestSuite(i);
    for (int k = 0; k < group.total_test_count(); ++k) {
      std::string name = NameOf(*group.GetTestInfo(k));
      if (absl::StrContains(name, SuiteArguments::Get().filter)) {
        names.push_back(std::move(name));
      }
    }
  }
  return names;
}

int Main(int argc, char** argv) {
  // googletest sees none of the words: they are the engine's, too.
  int program_alone = 1;
  testing::InitGoogleTest(&program_alone, argv);
  absl::Status status = SuiteArguments::Parse({argv + 1, argv + argc});
  if (!status.ok()) return Report(status);
  const SuiteArguments& arguments = SuiteArguments::Get();
  if (arguments.help) {
    std::cout << SuiteArguments::Help();
    return 0;
  }
  const std::vector<std::string> wanted = WantedRules();
  if (wanted.empty()) {
    return Report(MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("--filter: expected a part of a rule's name, found ",
                     Quoted(arguments.filter), "; --list prints the names")));
  }
  if (arguments.list) {
    std::cout << absl::StrJoin(wanted, "\n") << "\n";
    return 0;
  }
  if (!arguments.filter.empty()) {
    GTEST_FLAG_SET(filter, absl::StrJoin(wanted, ":"));
  }
  HandleStopSignals(ServerProcess::EndSuite);
  status = EngineFacts::Probe();
  if (!status.ok()) return Report(status);
  std::cout << EngineFacts::Get().Text() << std::endl;
  if (arguments.detect) return 0;
  testing::TestEventListeners& listeners =
      testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  auto* const report = new RuleReport;  // googletest's
  listeners.Append(report);
  listeners.Append(new EndsRule);
  const bool failed = RUN_ALL_TESTS() != 0;
  std::cout << report->Totals() << std::endl;
  return failed ? kExitFailed : 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
