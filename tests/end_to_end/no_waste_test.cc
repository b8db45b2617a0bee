// What a step does not do, counted and not timed: system calls while both
// sides spin, and allocations on either side.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/testing/child_process.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/error_codes.h"
#include "tests/end_to_end/counting_engine.h"
#include "tests/end_to_end/serve_until_signal.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/testing/allocation_counter.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 4;

// In memory shared with the forked engine: one count for each side.
struct SharedCounts {
  std::atomic<uint64_t> client{0};
  std::atomic<uint64_t> engine{0};
};

uint64_t Counted(const std::atomic<uint64_t>& count) {
  // relaxed: this thread wrote it; or the engine wrote it before the results
  // that Recv acquired.
  return count.load(std::memory_order_relaxed);
}

TEST(NoWaste, NeitherSideAllocatesInSteps) {
  void* const page = mmap(nullptr, sizeof(SharedCounts), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const counts = new (page) SharedCounts;
  EngineHost::Options options;
  options.name = UniqueRegionName("no-waste");
  ChildProcess engine([&] {
    allocation_count = &counts->engine;
    // Episodes end regularly, so that the steps include autoresets.
    CountingEngine counting(kEnvs, /*episode_steps=*/7);
    return ServeUntilSignal(&counting, options);
  });
  allocation_count = &counts->client;
  {
    absl::StatusOr<ClientSide> client =
        ClientSide::Attach(options.name, {.timeout_secs = 60});
    ASSERT_TRUE(client.ok()) << client.status();
    const std::vector<float> actions(kEnvs, 1.0F);
    const std::vector<int64_t> some = {0, 2};
    const std::vector<std::optional<uint64_t>> seeds = {42, std::nullopt};
    uint64_t before_client = 0;
    uint64_t before_engine = 0;
    ErrorCode code = ErrorCode::kOk;
    // The first hundred exchanges may still allocate. The loop runs for at
    // least half a second, to include work that occurs only at intervals.
    Deadline long_enough = Deadline::Infinite();
    for (int i = -100; code == ErrorCode::kOk; ++i) {
      if (i >= 10'000 && long_enough.PassedAt(MonotonicNanos())) break;
      if (i == 0) {
        long_enough = Deadline::After(0.5);
        before_client = Counted(counts->client);
        before_engine = Counted(counts->engine);
      }
      code =
          i % 10 == 9 ? client->SendReset(some, seeds) : client->Send(actions);
      if (code == ErrorCode::kOk) code = client->Recv(Deadline::After(60));
    }
    const uint64_t after_client = Counted(counts->client);
    const uint64_t after_engine = Counted(counts->engine);
    EXPECT_EQ(code, ErrorCode::kOk);
    EXPECT_EQ(after_client - before_client, 0);
    EXPECT_EQ(after_engine - before_engine, 0);
    // Both sides allocated at start: this proves that the hook counts.
    EXPECT_GT(before_client, 0);
    EXPECT_GT(before_engine, 0);
  }
  allocation_count = nullptr;
  engine.Signal(SIGTERM);
  EXPECT_EQ(engine.ExitCode(), 0);
  munmap(page, sizeof(SharedCounts));
}

// The calls of both processes between one mark and the next, as strace logged
// them. The failure message prints the calls.
std::vector<std::vector<std::string>> CallsBetweenMarks(
    const std::string& path) {
  std::vector<std::vector<std::string>> chunks;
  std::ifstream log(path);
  bool marked = false;
  for (std::string line; std::getline(log, line);) {
    // A call that another process interrupted has a second line. Lines of
    // signals and exits are not calls.
    if (absl::StrContains(line, "resumed>") || absl::StrContains(line, "---") ||
        absl::StrContains(line, "+++")) {
      continue;
    }
    if (absl::StrContains(line, "\"tandem-chunk")) {
      marked = true;
      chunks.emplace_back();
    } else if (marked) {
      chunks.back().push_back(line);
    }
  }
  if (!chunks.empty()) chunks.pop_back();  // The calls after the last mark.
  return chunks;
}

// When the scheduler takes a core from one side, the peer waits milliseconds
// and checks by a system call whether that side is alive. The cost of an
// exchange itself is in every chunk. The chunk with the fewest calls thus gives
// that cost on a busy machine as well.
TEST(NoWaste, SpinningSidesMakeLessThanOneSystemCallInAThousandExchanges) {
  constexpr int kChunks = 100;
  constexpr int kExchangesPerChunk = 1000;
  const std::string log =
      absl::StrCat(std::getenv("TEST_TMPDIR"), "/strace.log");
  const pid_t tracer = fork();
  ASSERT_GE(tracer, 0);
  if (tracer == 0) {
    alarm(240);
    const std::string chunks = absl::StrCat(kChunks);
    const std::string exchanges = absl::StrCat(kExchangesPerChunk);
    execlp("strace", "strace", "-f", "-o", log.c_str(),
           "tests/end_to_end/spin_session", chunks.c_str(), exchanges.c_str(),
           nullptr);
    _exit(127);  // strace is missing: tools/setup installs it.
  }
  int status = 0;
  ASSERT_EQ(waitpid(tracer, &status, 0), tracer);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_NE(WEXITSTATUS(status), 127)
      << "expected strace on PATH; next: tools/setup";
  ASSERT_EQ(WEXITSTATUS(status), 0);

  const std::vector<std::vector<std::string>> chunks = CallsBetweenMarks(log);
  ASSERT_EQ(chunks.size(), kChunks);
  const auto quietest = std::min_element(
      chunks.begin(), chunks.end(),
      [](const auto& a, const auto& b) { return a.size() < b.size(); });
  EXPECT_LT(quietest->size() * 1000, kExchangesPerChunk)
      << "the first of them: " << quietest->front();
  size_t all = 0;
  for (const std::vector<std::string>& chunk : chunks) {
    all += chunk.size();
    // Spinning sides never sleep and never wake another process.
    for (const std::string& call : chunk) {
      EXPECT_FALSE(absl::StrContains(call, "futex(")) << call;
    }
  }
  RecordProperty("calls_in_100000_exchanges", static_cast<int>(all));
  std::printf("%zu system calls in %d exchanges; in the quietest %d: %zu\n",
              all, kChunks * kExchangesPerChunk, kExchangesPerChunk,
              quietest->size());
}

}  // namespace
}  // namespace tandem
