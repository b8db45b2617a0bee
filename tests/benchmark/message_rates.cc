// Measures one way of sending messages from a process to another, once, and
// prints what it found as a line of JSON.
//
//   message_rates --channel=ring --wait=adaptive --bytes=64 --seconds=1
//   message_rates --channel=boost --bytes=4096 --hz=10000
//
// Without --hz a process writes as fast as the other reads (a flood), and what
// counts are messages a second; with it, it writes one at a time at that rate,
// and what counts are nanoseconds from before the write until after the read.
// Every message's number is checked.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "program/end_with_parent.h"
#include "tests/benchmark/message_channel.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/peer_channels.h"
#include "tests/benchmark/quantile.h"
#include "tests/benchmark/ring_channels.h"
#include "transport/base/clock.h"
#include "transport/wait/relax.h"
#include "transport/wait/wait_strategy.h"

ABSL_FLAG(std::string, channel, "ring",
          "ring, envelopes, spsc, bare_spsc, boost or pipe");
ABSL_FLAG(std::string, wait, "adaptive",
          "how both sides of ring, envelopes and spsc wait: spin, adaptive or "
          "block");
ABSL_FLAG(int, bytes, 64, "of a message: 64 or 4096");
ABSL_FLAG(double, hz, 0, "messages a second; 0: a flood");
ABSL_FLAG(double, seconds, 0.5, "how long to measure");
ABSL_FLAG(std::string, name, "",
          "what Boost's queue is called while it is made; empty: a unique "
          "one");

namespace tandem {
namespace {

// Messages before the first that counts are sent for that long: the scheduler
// spreads two processes over the cores in its own time.
constexpr double kWarmUpSecs = 0.05;
// Between two looks at the clock of a flood's reader.
constexpr int kMessagesPerLook = 256;

// The reader would wait forever for a writer that died.
void OnWriterEnd(int) {
  constexpr char kText[] = "the writer's process ended early\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

template <typename Message, typename Channel>
[[noreturn]] void WriteForever(Channel& channel, double hz) {
  const int64_t period_ns = hz > 0 ? static_cast<int64_t>(1e9 / hz) : 0;
  Message message{};
  for (int64_t due_ns = MonotonicNanos();; ++message.number) {
    if (period_ns > 0) {
      while ((message.sent_ns = MonotonicNanos()) < due_ns) Relax();
      due_ns = std::max(due_ns + period_ns, message.sent_ns);
    }
    channel.Send(message);
  }
}

template <typename Message, typename Channel>
void ReadAndReport(Channel& channel, bool is_flood) {
  Message message;
  uint64_t number = 0;
  bool in_order = true;
  const auto receive = [&] {
    channel.Receive(&message);
    in_order = in_order && message.number == number++;
  };
  const int each = is_flood ? kMessagesPerLook : 1;
  const Deadline warm = Deadline::After(kWarmUpSecs);
  do {
    for (int i = 0; i < each; ++i) receive();
  } while (!warm.PassedAt(MonotonicNanos()));

  std::vector<int64_t> latencies;
  const uint64_t first = number;
  const int64_t begin = MonotonicNanos();
  const Deadline end = Deadline::After(absl::GetFlag(FLAGS_seconds));
  int64_t now = begin;
  do {
    for (int i = 0; i < each; ++i) receive();
    now = MonotonicNanos();
    if (!is_flood) latencies.push_back(now - message.sent_ns);
  } while (!end.PassedAt(now));
  Require(in_order, "expected each message once, in order; found others");
  if (is_flood) {
    absl::PrintF("{\"rate\": %.1f}\n", 1e9 *
                                           static_cast<double>(number - first) /
                                           static_cast<double>(now - begin));
  } else {
    std::sort(latencies.begin(), latencies.end());
    absl::PrintF("{\"p50\": %d, \"p99\": %d}\n", Quantile(latencies, 0.5),
                 Quantile(latencies, 0.99));
  }
}

template <typename Message, template <typename> typename Channel>
int Measure(const ChannelOptions& options) {
  const double hz = absl::GetFlag(FLAGS_hz);
  Channel<Message> channel(options);
  signal(SIGCHLD, OnWriterEnd);
  const pid_t reader = getpid();
  const pid_t writer = fork();
  RequireCall(writer >= 0, "fork");
  if (writer == 0) {
    EndWithParent(SIGKILL, reader);
    WriteForever<Message>(channel, hz);
  }
  ReadAndReport<Message>(channel, hz <= 0);
  signal(SIGCHLD, SIG_DFL);
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  return 0;
}

template <template <typename> typename Channel>
int MeasureSize(const ChannelOptions& options) {
  switch (absl::GetFlag(FLAGS_bytes)) {
    case 64:
      return Measure<Message<64>, Channel>(options);
    case 4096:
      return Measure<Message<4096>, Channel>(options);
    default:
      std::fprintf(stderr, "--bytes: expected 64 or 4096\n");
      return 64;
  }
}

int Main() {
  const std::optional<WaitStrategy> strategy =
      WaitStrategyNamed(absl::GetFlag(FLAGS_wait));
  if (!strategy) {
    std::fprintf(stderr, "--wait: expected spin, adaptive or block\n");
    return 64;
  }
  ChannelOptions options = {.wait = *strategy,
                            .name = absl::GetFlag(FLAGS_name)};
  if (options.name.empty()) {
    options.name =
        absl::StrCat("tandem-benchmark-", getpid(), "-", MonotonicNanos());
  }
  const std::string channel = absl::GetFlag(FLAGS_channel);
  if (channel == "ring") return MeasureSize<RingChannel>(options);
  if (channel == "envelopes") return MeasureSize<EnvelopeChannel>(options);
  if (channel == "spsc") return MeasureSize<SpscChannel>(options);
  if (channel == "bare_spsc") return MeasureSize<BareSpscChannel>(options);
  if (channel == "boost") return MeasureSize<BoostChannel>(options);
  if (channel == "pipe") return MeasureSize<PipeChannel>(options);
  std::fprintf(stderr, "no channel is called '%s'; see --help\n",
               channel.c_str());
  return 64;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures one channel of the messages benchmark.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
