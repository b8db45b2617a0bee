// Measures one row of the benchmark once, and prints what it found as a line of
// JSON; or serves a row's engine for a client of another language.
//
//   round_trip --row=spin --envs=64 --obs=32 --act=8 --exchanges=1000
//   round_trip --row=host_adaptive --region=NAME --serve ...
//
// Times are nanoseconds. `step`: from handing over the actions to having the
// results. `cycle`: until they are read as well. tests/benchmark/benchmark.py
// runs this many times, the rows taking turns.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "program/end_with_parent.h"
#include "tests/benchmark/grpc_rows.h"
#include "tests/benchmark/iceoryx_rows.h"
#include "tests/benchmark/ladder_rows.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "tests/benchmark/peer_rows.h"
#include "tests/benchmark/quantile.h"
#include "tests/benchmark/row.h"
#include "tests/benchmark/tandem_rows.h"
#include "transport/base/clock.h"

ABSL_FLAG(std::string, row, "spin",
          "alone, spin, spin_copied, futex, socket, grpc; iceoryx_spin or "
          "iceoryx_block; sides_ or host_ with spin, adaptive or block; "
          "ladder_0 to ladder_6");
ABSL_FLAG(uint32_t, envs, 1, "environments");
ABSL_FLAG(uint32_t, obs, 4, "floats of an observation");
ABSL_FLAG(uint32_t, act, 1, "floats of an action");
ABSL_FLAG(int, exchanges, 1000, "how many to measure");
ABSL_FLAG(int, warmup, 100,
          "how many to make before, at least, and for 30 ms: the scheduler "
          "spreads two processes over the cores in its own time");
ABSL_FLAG(double, seconds, 2.0,
          "stop measuring after that long; ten are measured at least");
ABSL_FLAG(std::string, region, "",
          "name of the region, or of gRPC's socket; empty: a unique one");
ABSL_FLAG(bool, serve, false, "serve the row's engine until SIGTERM");
ABSL_FLAG(int, socket, -1, "with --serve --row=socket: the connected socket");
ABSL_FLAG(int, cpu_fd, -1,
          "with --serve: SIGUSR1 writes the process's CPU time there, "
          "nanoseconds as an int64");

namespace tandem {
namespace {

// Writer: Main; reader: the signal handler, in whichever thread: gRPC starts
// some that take signals. Publishes nothing but itself; false initially.
std::atomic<bool> engine_may_end{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// A bare spinning client would wait forever for an engine that died.
void OnEngineEnd(int) {
  // SYNC(round_trip.may_end): acquire; nothing but itself, before the kill.
  if (engine_may_end.load(std::memory_order_acquire)) return;
  constexpr char kText[] = "the engine's process ended early\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

std::unique_ptr<Row> MakeRow(const std::string& name,
                             const RowOptions& options) {
  if (std::unique_ptr<Row> row = MakePeerRow(name, options)) return row;
  if (std::unique_ptr<Row> row = MakeTandemRow(name, options)) return row;
  if (std::unique_ptr<Row> row = MakeGrpcRow(name, options)) return row;
  if (std::unique_ptr<Row> row = MakeIceoryxRow(name, options)) return row;
  return MakeLadderRow(name, options);
}

// CPU time of this process, nanoseconds.
int64_t CpuNanos() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

// An engine's process tells its CPU time when SIGUSR1 asks: what others can
// read of it lags by a scheduler's tick. Writer: TellCpuWhenAsked, before the
// handler is there; reader: the handler.
std::atomic<int> tell_cpu_to{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void TellCpu(int) {
  const int64_t nanos = CpuNanos();
  // relaxed: sigaction, after the store, is what brings the handler here.
  const int fd = tell_cpu_to.load(std::memory_order_relaxed);
  (void)!write(fd, &nanos, sizeof(nanos));
}

void TellCpuWhenAsked(int fd) {
  // relaxed: as in TellCpu.
  tell_cpu_to.store(fd, std::memory_order_relaxed);
  struct sigaction on_question = {};
  on_question.sa_handler = TellCpu;
  on_question.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &on_question, nullptr);
}

int64_t AskCpuNanos(pid_t engine, int answers) {
  int64_t nanos = 0;
  kill(engine, SIGUSR1);
  RequireCall(read(answers, &nanos, sizeof(nanos)) == sizeof(nanos), "read");
  return nanos;
}

std::string Summary(std::vector<int64_t> nanos) {
  std::sort(nanos.begin(), nanos.end());
  const double sum = std::accumulate(nanos.begin(), nanos.end(), 0.0);
  return absl::StrFormat(R"({"mean": %.1f, "p50": %d, "p99": %d})",
                         sum / static_cast<double>(nanos.size()),
                         Quantile(nanos, 0.5), Quantile(nanos, 0.99));
}

int Measure(Row& row, const Size& size, pid_t engine, int cpu_answers) {
  // Two sets of actions take turns, so that results of the exchange before
  // would be noticed.
  std::vector<float> actions[2];
  for (size_t set = 0; set < 2; ++set) {
    actions[set].resize(size.action_floats());
    for (size_t i = 0; i < actions[set].size(); ++i) {
      actions[set][i] = static_cast<float>(i % 5 + set);
    }
  }
  const int exchanges = absl::GetFlag(FLAGS_exchanges);
  const int warmup = absl::GetFlag(FLAGS_warmup);
  std::vector<int64_t> steps;
  std::vector<int64_t> cycles;
  steps.reserve(static_cast<size_t>(exchanges));
  cycles.reserve(static_cast<size_t>(exchanges));
  Deadline end = Deadline::Infinite();
  int64_t client_cpu = 0;
  int64_t engine_cpu = 0;
  float sum = 0;
  const Deadline warm = Deadline::After(0.03);
  for (int i = -warmup; i < exchanges; ++i) {
    if (i == 0 && !warm.PassedAt(MonotonicNanos())) i = -2;
    if (i == 0) {
      end = Deadline::After(absl::GetFlag(FLAGS_seconds));
      engine_cpu = AskCpuNanos(engine, cpu_answers);
      client_cpu = CpuNanos();
    }
    const float* const now = actions[i & 1].data();
    const int64_t asked = MonotonicNanos();
    const Results results = row.Exchange(now);
    const int64_t answered = MonotonicNanos();
    sum += ReadResults(size, results);
    const int64_t read = MonotonicNanos();
    if (!AreResultsOf(size, now, results)) {
      const float reward = LastReward(size, now);
      absl::FPrintF(stderr,
                    "exchange %d, last environment: expected reward %g, last "
                    "value %g and done 0, found %g, %g and %d. Next: run this "
                    "row alone, by --row\n",
                    i, reward, reward + static_cast<float>(size.obs - 1),
                    results.rewards[size.envs - 1],
                    results.obs[size.obs_floats() - 1],
                    results.dones[size.envs - 1]);
      return 1;
    }
    if (i < 0) continue;
    steps.push_back(answered - asked);
    cycles.push_back(read - asked);
    if (i >= 10 && end.PassedAt(read)) break;
  }
  const auto count = static_cast<double>(steps.size());
  client_cpu = CpuNanos() - client_cpu;
  engine_cpu = AskCpuNanos(engine, cpu_answers) - engine_cpu;
  absl::PrintF(
      R"({"exchanges": %d, "step": %s, "cycle": %s, "client_cpu": %.1f, )"
      R"("engine_cpu": %.1f, "sum": %g})"
      "\n",
      steps.size(), Summary(steps), Summary(cycles),
      static_cast<double>(client_cpu) / count,
      static_cast<double>(engine_cpu) / count, sum);
  return 0;
}

int Main() {
  RowOptions options = {.size = {.envs = absl::GetFlag(FLAGS_envs),
                                 .obs = absl::GetFlag(FLAGS_obs),
                                 .act = absl::GetFlag(FLAGS_act)},
                        .region = absl::GetFlag(FLAGS_region)};
  if (options.size.envs == 0 || options.size.obs == 0 ||
      options.size.act == 0 || absl::GetFlag(FLAGS_exchanges) < 1) {
    std::fprintf(stderr, "expected sizes and exchanges of at least 1\n");
    return 64;
  }
  if (options.region.empty()) {
    options.region =
        absl::StrCat("tandem-benchmark-", getpid(), "-", MonotonicNanos());
  }
  const std::string name = absl::GetFlag(FLAGS_row);
  const std::unique_ptr<Row> row = MakeRow(name, options);
  if (row == nullptr) {
    std::fprintf(stderr, "no row is called '%s'; see --help\n", name.c_str());
    return 64;
  }
  if (absl::GetFlag(FLAGS_serve)) {
    TellCpuWhenAsked(absl::GetFlag(FLAGS_cpu_fd));
    if (const int socket = absl::GetFlag(FLAGS_socket); socket >= 0) {
      ServeSocket(socket, options.size);
    } else {
      row->Serve();
    }
    return 0;
  }
  int cpu_pipe[2];
  RequireCall(pipe2(cpu_pipe, O_CLOEXEC) == 0, "pipe2");
  TellCpuWhenAsked(cpu_pipe[1]);
  struct sigaction on_end = {};
  on_end.sa_handler = OnEngineEnd;
  on_end.sa_flags = SA_NOCLDSTOP | SA_RESTART;
  sigaction(SIGCHLD, &on_end, nullptr);
  const pid_t client = getpid();
  const pid_t engine = fork();
  RequireCall(engine >= 0, "fork");
  if (engine == 0) {
    EndWithParent(SIGTERM, client);
    row->Serve();
    _exit(0);
  }
  row->Connect();
  const int code = Measure(*row, options.size, engine, cpu_pipe[0]);
  // SYNC(round_trip.may_end): release; before the kill that brings the handler.
  engine_may_end.store(true, std::memory_order_release);
  kill(engine, SIGTERM);
  waitpid(engine, nullptr, 0);
  return code;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::EndWithParent(SIGTERM, getppid());
  absl::SetProgramUsageMessage(
      "Measures one row of the step round trip benchmark, once.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
