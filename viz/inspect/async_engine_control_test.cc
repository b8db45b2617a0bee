#include "viz/inspect/async_engine_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/error.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/core/background.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Await(const Pending& pending) {
  while (!pending.Get().has_value()) absl::SleepFor(absl::Milliseconds(1));
  return *pending.Get();
}

TEST(AsyncEngineControl, ReportsARegion) {
  const std::string run = UniqueRegionName("engines");
  const Publisher publisher({.kind = PatternRun::Kind::kRegion, .run = run});
  AsyncEngineControl engines("test");
  // At first the region may not be there yet.
  std::string report;
  while (report.find(R"("known":true)") == std::string::npos) {
    const int64_t now_ns = MonotonicNanos();
    if (const auto found = engines.Report(run, now_ns, 0)) report = *found;
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(report, HasSubstr("Pattern-v0"));
}

TEST(AsyncEngineControl, HasABoundedNumberOfReports) {
  const std::string run = UniqueRegionName("engines");
  AsyncEngineControl engines("test");
  const auto await = [&](size_t number, int64_t now_ns, int64_t since_ns) {
    while (!engines.Report(absl::StrCat(run, number), now_ns, since_ns)) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  };
  const int64_t now_ns = MonotonicNanos();
  for (size_t i = 0; i < AsyncEngineControl::kMostReports; ++i)
    await(i, now_ns, 0);
  const std::string late = absl::StrCat(run, "late");
  EXPECT_EQ(engines.Report(late, now_ns, 0), nullptr);
  await(0, now_ns + 1, now_ns + 1);  // is read after it
  EXPECT_EQ(engines.Report(late, now_ns + 1, 0), nullptr);
  const int64_t later_ns = now_ns + 2 * AsyncEngineControl::kForgetNs;
  while (engines.Report(late, later_ns, 0) == nullptr) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST(AsyncEngineControl, RefusesWhatIsNoService) {
  AsyncEngineControl engines("test");
  absl::Status logged;
  const absl::Status unknown =
      Await(*engines.Act("x", SwitchService{.service = "<b>"},
                         [&](const absl::Status& status) { logged = status; }))
          .status();
  EXPECT_EQ(CodeOf(unknown), ErrorCode::kInvalidArgument);
  EXPECT_EQ(logged, unknown);
  EXPECT_FALSE(
      Await(*engines.Act(UniqueRegionName("none"), StepEngine())).ok());
}

}  // namespace
}  // namespace tandem
