// What the window draws beside programs that use every processor. The publisher
// is cheap: an engine that renders by the processor publishes fewer images by
// itself (docs/decisions/0016-watching-takes-what-is-left.md).
//
// By hand, on an idle machine: bazel test //viz/viewer:viewer_busy_test
// //viz/viewer:viewer_busy_software_test --test_output=all
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "viz/viewer/testing/viewer_fixture.h"

namespace tandem {
namespace {

constexpr int64_t kWarmUpNs = 3'000'000'000;
constexpr int64_t kMeasureNs = 10'000'000'000;
constexpr double kLeastHz = 10;

// A process for each processor that computes until the end of the test.
class BusyProcessors {
 public:
  BusyProcessors() {
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      const int pid = fork();
      if (pid > 0) pids_.push_back(pid);
      if (pid != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile uint64_t count = 0;;) count = count + 1;
    }
  }
  BusyProcessors(const BusyProcessors&) = delete;
  BusyProcessors& operator=(const BusyProcessors&) = delete;
  ~BusyProcessors() {
    for (const int pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::vector<int> pids_;
};

// The time for which this process's threads have run.
int64_t CpuNanos() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

class BusyTest : public ViewerTest {
 protected:
  // Prints and returns the images that the window draws in a second.
  double Measure(const char* what, const ViewerOptions& options) {
    PatternRun run = {.run = run_, .hz = 30};
    run.geometry.width = 640;
    run.geometry.height = 480;
    OpenRun(run, options);
    int64_t shown = 0;
    std::vector<int64_t> gaps;
    int64_t last_ns = 0;
    QObject::connect(window(), &QQuickWindow::frameSwapped, window(), [&] {
      if (tab()->image().cacheKey() == shown) return;
      shown = tab()->image().cacheKey();
      const int64_t now_ns = MonotonicNanos();
      gaps.push_back(now_ns - last_ns);
      last_ns = now_ns;
    });
    const auto wait = [&](int64_t nanos) {
      const int64_t end_ns = MonotonicNanos() + nanos;
      Await([&] { return MonotonicNanos() > end_ns; });
    };
    wait(kWarmUpNs);
    gaps.clear();
    const int64_t cpu_ns = CpuNanos();
    wait(kMeasureNs);
    const double share =
        static_cast<double>(CpuNanos() - cpu_ns) / kMeasureNs * 100;
    std::ranges::sort(gaps);
    const double hz = static_cast<double>(gaps.size()) * 1e9 / kMeasureNs;
    std::printf(
        "%s: %.1f images/s, longest gap %.0f ms, %.0f %% of a core\n", what, hz,
        gaps.empty() ? 0.0 : static_cast<double>(gaps.back()) * 1e-6, share);
    return hz;
  }
};

TEST_F(BusyTest, IdleProcessors) { EXPECT_GE(Measure("idle", {}), kLeastHz); }

TEST_F(BusyTest, BusyProcessorsLeaveTenImagesASecond) {
  const BusyProcessors busy;
  EXPECT_GE(Measure("all processors busy", {}), kLeastHz);
}

TEST_F(BusyTest, ALargeWindowKeepsThem) {
  const BusyProcessors busy;
  ViewerOptions options;
  options.width = 1400;
  options.height = 1000;
  EXPECT_GE(Measure("all processors busy, 1400x1000", options), kLeastHz);
}

}  // namespace
}  // namespace tandem
