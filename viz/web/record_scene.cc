#include "viz/web/record_scene.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "transport/region.h"
#include "viz/core/background.h"
#include "viz/core/scene_watch.h"
#include "viz/web/scene_replay.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kTick{5};
constexpr int64_t kProgressNs = 500'000'000;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Replaces the line before on a terminal; elsewhere there is no progress.
void ShowProgress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
}

}  // namespace

absl::Status RecordScene(const WebOptions& options,
                         const std::atomic<bool>* stop) {
  TANDEM_RETURN_IF_ERROR(CheckScenePath(options.save));
  const int64_t begin_ns = MonotonicNanos();
  const std::string name = Printable(options.run);
  TANDEM_ASSIGN_OR_RETURN(const LrbcHeader region, PeekRegion(options.run));
  WorkThread thread;
  SceneWatch watch(options.run, &thread);
  const std::shared_ptr<std::vector<uint32_t>> wanted = watch.Join();
  wanted->resize(std::min(options.envs, region.num_envs));
  std::iota(wanted->begin(), wanted->end(), 0);
  int64_t first_ns = 0;
  int64_t next_ns = 0;
  for (int64_t now_ns = begin_ns;; now_ns = MonotonicNanos()) {
    watch.Poll(now_ns);
    using State = SceneWatch::State;
    if (first_ns == 0 && watch.newest() != nullptr) first_ns = now_ns;
    // relaxed: the flag publishes nothing else.
    const bool is_over =
        stop->load(std::memory_order_relaxed) ||
        (first_ns > 0 && (Seconds(now_ns - first_ns) >= options.seconds ||
                          watch.state() != State::kLive));
    if (is_over) break;
    if (watch.state() == State::kNone || watch.state() == State::kFailed) break;
    if (first_ns == 0 && Seconds(now_ns - begin_ns) >= kSceneWaitSecs) break;
    if (now_ns >= next_ns) {
      next_ns = now_ns + kProgressNs;
      ShowProgress(absl::StrFormat(
          "%s: %.1f of %g s", name,
          first_ns == 0 ? 0 : Seconds(now_ns - first_ns), options.seconds));
    }
    std::this_thread::sleep_for(kTick);
  }
  ShowProgress("");
  if (first_ns == 0) {
    return MakeError(
        watch.state() == SceneWatch::State::kNone ? ErrorCode::kUnsupported
                                                  : ErrorCode::kNotReady,
        absl::StrCat("expected a scene of ", name, ", found none",
                     watch.reason().empty() ? "" : ": ", watch.reason()));
  }
  const SceneRecording recording =
      SceneRecording::Of(watch, options.run, first_ns);
  TANDEM_RETURN_IF_ERROR(SaveScene(recording, options.save));
  std::fprintf(stderr, "tandem-view: %zu snapshots of %.1f s in %s\n",
               recording.poses.size(),
               Seconds(recording.poses.back()->at_ns - first_ns),
               options.save.c_str());
  return absl::OkStatus();
}

}  // namespace tandem
