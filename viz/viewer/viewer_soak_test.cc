// The memory of the window stays constant while 200 runs come and go, each in a
// tab of its own.
//
// By hand: bazel test //viz/viewer:viewer_soak_test --test_output=all. It takes
// 70 minutes; --test_env=MINUTES=4 shortens it.
#include <gtest/gtest.h>

#include <QProcess>
#include <QString>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/viewer/testing/viewer_fixture.h"

namespace tandem {
namespace {

constexpr int kRuns = 200;
constexpr size_t kAtOnce = 8;
constexpr int64_t kLargestGrowthKib = 5'000;  // 5 MB

// This process's memory, its share of what it shares with others.
int64_t PssKib() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  int64_t kib = 0;
  while (file >> word && word != "Pss:") {
  }
  file >> kib;
  return kib;
}

int64_t MedianOf(std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  return numbers.at(numbers.size() / 2);
}

// A run with frames, in a process of its own: a fork would share this one's
// memory.
std::unique_ptr<QProcess> StartRun(const std::string& run) {
  auto process = std::make_unique<QProcess>();
  process->start(QStringLiteral("viz/testing/publish_pattern"),
                 {QString::fromStdString(run), QStringLiteral("segment"),
                  QStringLiteral("160"), QStringLiteral("120"),
                  QStringLiteral("3"), QStringLiteral("20")});
  EXPECT_TRUE(process->waitForStarted());
  return process;
}

TEST_F(ViewerTest, MemoryStaysConstantWhileRunsComeAndGo) {
  const char* const minutes = std::getenv("MINUTES");
  const double secs = 60 * std::atof(minutes == nullptr ? "70" : minutes);
  const double warm_up_secs = secs / 7;  // ten minutes of seventy
  const double window_secs = secs / 50;  // of the two medians
  Open({});
  std::deque<std::unique_ptr<QProcess>> runs;
  std::vector<int64_t> warm;
  std::vector<int64_t> end;
  int begun = 0;
  const int64_t begin_ns = MonotonicNanos();
  double passed = 0;
  while ((passed = static_cast<double>(MonotonicNanos() - begin_ns) * 1e-9) <
         secs) {
    if (passed >= begun * secs / kRuns) {
      ++begun;
      const std::string run = UniqueRegionName("soak");
      runs.push_back(StartRun(run));
      viewer_->open(QString::fromStdString(run));
      if (runs.size() > kAtOnce) {
        runs.front()->terminate();
        EXPECT_TRUE(runs.front()->waitForFinished());
        runs.pop_front();
        viewer_->close(0);
      }
    }
    QTest::qWait(100);
    if (std::abs(passed - warm_up_secs) < window_secs) warm.push_back(PssKib());
    if (passed > secs - window_secs) end.push_back(PssKib());
  }
  EXPECT_EQ(tab()->status(), QStringLiteral("connected"));
  for (const auto& run : runs) run->terminate();
  for (const auto& run : runs) EXPECT_TRUE(run->waitForFinished());
  const int64_t before = MedianOf(warm);
  const int64_t after = MedianOf(end);
  std::printf("%d runs in %g min: PSS %lld KiB, then %lld KiB\n", begun,
              secs / 60, static_cast<long long>(before),
              static_cast<long long>(after));
  EXPECT_LT(after - before, kLargestGrowthKib);
}

}  // namespace
}  // namespace tandem
