// Measures one row of the step round trip once, or serves a row's engine for a
// client in another language.
//
//   round_trip --row=spin --envs=64 --obs=32 --act=8 --exchanges=1000
//   round_trip --row=host_adaptive --region=NAME --serve ...
//
// Prints binary int64 nanoseconds. First comes, for each exchange, the time
// from sending the actions to receiving the results. Then comes, for each
// exchange, the time until the results are read as well.
// tests/benchmark/steps.py runs it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/os/end_with_parent.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "tests/benchmark/row.h"

ABSL_FLAG(std::string, row, "spin",
          "spin, futex, socket, grpc, host_spin, host_adaptive or "
          "host_block");
ABSL_FLAG(uint32_t, envs, 1, "environments");
ABSL_FLAG(uint32_t, obs, 4, "floats of an observation");
ABSL_FLAG(uint32_t, act, 1, "floats of an action");
ABSL_FLAG(int, exchanges, 1000, "exchanges to measure");
ABSL_FLAG(double, seconds, 2.0,
          "time limit of the measurement; ten exchanges are measured at least");
ABSL_FLAG(double, policy_secs, 0.0,
          "time that the client computes between two exchanges");
ABSL_FLAG(std::string, region, "",
          "name of the region, or of gRPC's socket; empty: a unique one");
ABSL_FLAG(bool, serve, false, "serve the row's engine until SIGTERM");
ABSL_FLAG(int, socket, -1, "with --serve --row=socket: the connected socket");

namespace tandem {
namespace {

// The scheduler takes this long to spread two processes over the cores.
constexpr double kWarmUpSecs = 0.03;

// A spinning client without a check would wait forever for a dead engine.
void OnEngineEnd(int) {
  constexpr char kText[] = "the engine's process ended early\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

std::unique_ptr<Row> MakeRow(const std::string& name,
                             const RowOptions& options) {
  if (std::unique_ptr<Row> row = MakePlainRow(name, options.size)) return row;
  if (std::unique_ptr<Row> row = MakeTandemRow(name, options)) return row;
  if (std::unique_ptr<Row> row = MakeGrpcRow(name, options)) return row;
  Fail(absl::StrCat("--row: expected a row, found '", name, "'"), 64);
}

void Print(const std::vector<int64_t>& nanos) {
  RequireCall(std::fwrite(nanos.data(), sizeof(int64_t), nanos.size(),
                          stdout) == nanos.size(),
              "fwrite");
}

void Measure(Row& row, const Size& size) {
  // Two sets of actions alternate. The client would thus detect results of the
  // previous exchange.
  std::vector<float> actions[2];
  for (size_t set = 0; set < 2; ++set) {
    actions[set].resize(size.action_floats());
    for (size_t i = 0; i < actions[set].size(); ++i) {
      actions[set][i] = static_cast<float>(i % 5 + set);
    }
  }
  const int exchanges = absl::GetFlag(FLAGS_exchanges);
  const double policy_secs = absl::GetFlag(FLAGS_policy_secs);
  std::vector<int64_t> steps;
  std::vector<int64_t> cycles;
  steps.reserve(static_cast<size_t>(exchanges));
  cycles.reserve(static_cast<size_t>(exchanges));
  float sum = 0;
  const Deadline warm = Deadline::After(kWarmUpSecs);
  Deadline end = Deadline::Infinite();
  for (int i = -10; i < exchanges; ++i) {
    if (i == 0) {
      if (warm.PassedAt(MonotonicNanos())) {
        end = Deadline::After(absl::GetFlag(FLAGS_seconds));
      } else {
        i = -2;
      }
    }
    const float* const now = actions[i & 1].data();
    const int64_t asked = MonotonicNanos();
    const Results results = row.Exchange(now);
    const int64_t answered = MonotonicNanos();
    sum += ReadResults(size, results);
    const int64_t read = MonotonicNanos();
    if (!AreResultsOf(size, now, results)) {
      const float reward = LastReward(size, now);
      Fail(absl::StrFormat(
          "exchange %d, last environment: expected reward %g, last value %g "
          "and done 0, found %g, %g and %d. Next: run this row alone, by --row",
          i, reward, reward + static_cast<float>(size.obs - 1),
          results.rewards[size.envs - 1], results.obs[size.obs_floats() - 1],
          results.dones[size.envs - 1]));
    }
    if (i < 0) continue;
    steps.push_back(answered - asked);
    cycles.push_back(read - asked);
    const Deadline computed = Deadline::After(policy_secs);
    while (policy_secs > 0 && !computed.PassedAt(MonotonicNanos())) {
    }
    if (i >= 10 && end.PassedAt(read)) break;
  }
  Require(std::isfinite(sum), "expected finite results");
  Print(steps);
  Print(cycles);
}

int Main() {
  RowOptions options = {.size = {.envs = absl::GetFlag(FLAGS_envs),
                                 .obs = absl::GetFlag(FLAGS_obs),
                                 .act = absl::GetFlag(FLAGS_act)},
                        .region = absl::GetFlag(FLAGS_region)};
  if (options.size.envs == 0 || options.size.obs == 0 ||
      options.size.act == 0 || absl::GetFlag(FLAGS_exchanges) < 1) {
    Fail("expected sizes and exchanges of at least 1", 64);
  }
  if (options.region.empty()) {
    options.region =
        absl::StrCat("tandem-benchmark-", getpid(), "-", MonotonicNanos());
  }
  const std::unique_ptr<Row> row = MakeRow(absl::GetFlag(FLAGS_row), options);
  if (absl::GetFlag(FLAGS_serve)) {
    if (const int socket = absl::GetFlag(FLAGS_socket); socket >= 0) {
      ServeSocket(socket, options.size);
    } else {
      row->Serve();
    }
    return 0;
  }
  signal(SIGCHLD, OnEngineEnd);
  const pid_t client = getpid();
  const pid_t engine = fork();
  RequireCall(engine >= 0, "fork");
  if (engine == 0) {
    EndWithParent(SIGTERM, client);
    row->Serve();
    _exit(0);
  }
  row->Connect();
  Measure(*row, options.size);
  signal(SIGCHLD, SIG_DFL);
  kill(engine, SIGTERM);
  waitpid(engine, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::EndWithParent(SIGTERM, getppid());
  absl::SetProgramUsageMessage("Measures one row of the step round trip.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
