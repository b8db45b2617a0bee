// A worker that prints events with little CPU time: steps, by the line of the
// slow lane's original design document with the time, and scalars.
//
//   step_printer --steps=500000                # as fast as possible
//   step_printer --steps=20000 --hz=1000       # paced, --block events at a
//   time step_printer --steps=20000 --scalars=200   # an event of scalars after
//   100
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "tests/benchmark/or_exit.h"

ABSL_FLAG(uint64_t, steps, 500'000, "how many to print");
ABSL_FLAG(uint64_t, scalars, 0,
          "how many events of four scalars to print, evenly between the steps");
ABSL_FLAG(uint64_t, block, 50, "events in one write");
ABSL_FLAG(double, hz, 0, "events a second; 0: as fast as possible");
ABSL_FLAG(std::string, gate, "",
          "a file for whose creation it waits; empty: it begins at once");

namespace tandem {
namespace {

constexpr uint64_t kStepsOfEpisode = 200;
constexpr int64_t kGateLookNs = 20'000'000;

int64_t UnixNanos() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The reward identifies the step, so that a row can be compared with its line.
void AddLine(uint64_t index, int64_t unix_ns, std::string* text) {
  absl::StrAppendFormat(
      text,
      "{\"event_type\": \"step\", \"run_id\": \"01ARZ3NDEKTSV4RRFFQ69G5FAV\", "
      "\"episode\": %d, \"step_index\": %d, \"action\": 1, \"observation\": "
      "[0.02, -0.01, 0.03, -0.02], \"reward\": %d.5, \"terminated\": false, "
      "\"truncated\": false, \"ts_unix_ns\": %d}\n",
      index / kStepsOfEpisode, index, index, unix_ns);
}

void AddScalars(uint64_t index, int64_t unix_ns, std::string* text) {
  absl::StrAppendFormat(
      text,
      "{\"event_type\": \"scalars\", \"step\": %d, \"scalars\": "
      "{\"train/loss\": %d.5, \"train/approx_kl\": 0.0123, "
      "\"train/clip_fraction\": 0.25, \"rollout/ep_rew_mean\": -17.5}, "
      "\"ts_unix_ns\": %d}\n",
      index, index, unix_ns);
}

void WriteAll(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    RequireCall(written > 0, "write");
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void SleepUntil(int64_t monotonic_ns) {
  const timespec until = {.tv_sec = monotonic_ns / 1'000'000'000,
                          .tv_nsec = monotonic_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) !=
         0) {
  }
}

int Main() {
  const uint64_t steps = absl::GetFlag(FLAGS_steps);
  const uint64_t scalars = absl::GetFlag(FLAGS_scalars);
  const uint64_t events = steps + scalars;
  const uint64_t every = scalars > 0 ? events / scalars : events + 1;
  const uint64_t block = absl::GetFlag(FLAGS_block);
  const double hz = absl::GetFlag(FLAGS_hz);
  Require(block > 0 && hz >= 0, "expected --block above 0 and --hz from 0");
  const std::string gate = absl::GetFlag(FLAGS_gate);
  while (!gate.empty() && access(gate.c_str(), F_OK) != 0) {
    SleepUntil(MonotonicNanos() + kGateLookNs);
  }
  const int64_t begin_ns = MonotonicNanos();
  std::string text;
  uint64_t printed_scalars = 0;
  for (uint64_t index = 0; index < events; ++index) {
    if (hz > 0 && index % block == 0) {
      SleepUntil(begin_ns +
                 static_cast<int64_t>(1e9 * static_cast<double>(index) / hz));
    }
    if ((index + 1) % every == 0 && printed_scalars < scalars) {
      AddScalars(++printed_scalars, UnixNanos(), &text);
    } else {
      AddLine(index - printed_scalars, UnixNanos(), &text);
    }
    if ((index + 1) % block == 0 || index + 1 == events) {
      WriteAll(text);
      text.clear();
    }
  }
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Prints steps and scalars as a worker does.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
