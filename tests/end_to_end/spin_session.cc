// Runs spinning exchanges between two processes for no_waste_test to trace:
//
//   strace -f -o LOG spin_session CHUNKS EXCHANGES_PER_CHUNK
//
// The client marks the end of each chunk by writing kMark to /dev/null.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "base/os/testing/child_process.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/error_codes.h"
#include "tests/end_to_end/counting_engine.h"
#include "tests/end_to_end/serve_until_signal.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr char kMark[] = "tandem-chunk";
constexpr uint32_t kEnvs = 4;

int Exchange(const std::string& name, int chunks, int exchanges_per_chunk) {
  absl::StatusOr<ClientSide> client = ClientSide::Attach(
      name, {.timeout_secs = 60, .wait = WaitStrategy::kSpin});
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const std::vector<float> actions(kEnvs, 1.0F);
  for (int chunk = 0; chunk <= chunks; ++chunk) {
    if (write(null, kMark, sizeof(kMark)) != sizeof(kMark)) return 2;
    if (chunk == chunks) break;
    for (int i = 0; i < exchanges_per_chunk; ++i) {
      if (client->Step(actions, 120) != ErrorCode::kOk) return 3;
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  int chunks = 0;
  int exchanges_per_chunk = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &chunks) ||
      !absl::SimpleAtoi(argv[2], &exchanges_per_chunk)) {
    std::fprintf(stderr, "Usage: spin_session CHUNKS EXCHANGES_PER_CHUNK\n");
    return 64;
  }
  EngineHost::Options options;
  options.name = UniqueRegionName("spin-session");
  options.wait = WaitStrategy::kSpin;
  ChildProcess engine([&] {
    // Episodes of 7 steps: the steps include resets in the engine.
    CountingEngine counting(kEnvs, /*episode_steps=*/7);
    return ServeUntilSignal(&counting, options);
  });
  const int code = Exchange(options.name, chunks, exchanges_per_chunk);
  engine.Signal(SIGTERM);
  const int engine_code = engine.ExitCode();
  return code != 0 ? code : engine_code;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
