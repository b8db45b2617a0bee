#include "engine_adapter/frames/frame_thread.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/os/blocked_signals.h"
#include "base/os/machine.h"
#include "base/printable.h"
#include "engine_adapter/frames/frame_pace.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kProbeNs = 200'000'000;
// The render thread renders also without new results, at this interval. So
// viewers see that the engine lives, and that its step rate is 0.
constexpr int64_t kRefreshNs = kSecondNs;
// The interval of the step rate's measurement.
constexpr int64_t kRateNs = kSecondNs / 2;
constexpr size_t kErrorBytes = 400;

}  // namespace

uint32_t FrameThread::MetadataBytes(const FrameOptions& options) {
  constexpr size_t kFixed = 256;
  constexpr size_t kEachEnv = 11;  // digits of a uint32_t, and a comma
  return static_cast<uint32_t>(kFixed + 2 * kErrorBytes +
                               kEachEnv * options.envs.size());
}

FrameThread::FrameThread(FrameSource* source, const FrameOptions& options,
                         uint32_t num_envs, bool has_rewards,
                         FrameWriter writer, Links links)
    : source_(source),
      options_(options),
      grid_(FrameGrid::Of(options)),
      links_(std::move(links)),
      statistics_(num_envs, has_rewards),
      writer_(std::move(writer)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { Run(); });
}

FrameThread::~FrameThread() {
  turn_.Stop();
  thread_.join();
}

void FrameThread::Count(const CountedExchange& exchange) {
  statistics_.Count(exchange);
  ++counted_by_steps_;
}

void FrameThread::ClearClientState() {
  statistics_.Clear();
  ++counted_by_steps_;
}

void FrameThread::Serve(uint64_t step, uint32_t request) {
  // relaxed: here and below: the render thread only compares the numbers, and
  // then waits for the copies.
  counted_.store(counted_by_steps_, std::memory_order_relaxed);
  env_steps_.store(statistics_.env_steps(), std::memory_order_relaxed);
  const bool asked = wanted_.load(std::memory_order_relaxed) != request;
  if (asked) wanted_.store(request, std::memory_order_relaxed);
  const bool gave = turn_.Give([&] {
    absl::Status copied = Guarded([this] {
      for (uint32_t place = 0; place < options_.envs.size(); ++place) {
        source_->Capture(place);
      }
      return absl::OkStatus();
    });
    const std::optional<RunSnapshot> own_run = links_.own_run();
    copied_ = {.step = step,
               .request = request,
               .counted = counted_by_steps_,
               .run = own_run ? *own_run : statistics_.Now(options_.envs),
               .status = std::move(copied)};
  });
  if (asked && !gave) turn_.Ring();
}

void FrameThread::Run() {
  // Users and tests find the thread by this name.
  NameThread("tandem-frames");
  if (options_.hz > 0 && !options_.complete) GoToBackground();
  FramePace pace(options_.hz, options_.complete);
  const CoreWait line;
  int64_t next_probe_ns = 0;
  bool watched = false;
  while (!turn_.Stopping()) {
    const int64_t now = MonotonicNanos();
    if (options_.hz > 0 && now >= next_probe_ns) {
      watched = links_.watched();
      next_probe_ns = now + kProbeNs;
    }
    UpdateRate(now);
    // relaxed: see Serve.
    const bool asked = wanted_.load(std::memory_order_relaxed) != answered_;
    const bool news =
        counted_.load(std::memory_order_relaxed) != drawn_count_ ||
        now - drawn_at_ns_ >= kRefreshNs;
    if (asked || (watched && news && now >= pace.due_ns())) {
      if (turn_.Await(asked ? 0 : kNextExchangeNs, links_.wake_step_thread)) {
        const int64_t begin_ns = MonotonicNanos();
        const int64_t waited_ns = line.Nanos();
        DrawFrame();
        pace.Drew(begin_ns, MonotonicNanos(), line.Nanos() - waited_ns);
      }
      continue;
    }
    int64_t wake_ns = options_.hz > 0 ? next_probe_ns : now + kSecondNs;
    if (watched) {
      wake_ns = std::min(
          wake_ns,
          std::max(pace.due_ns(), news ? now : now + pace.period_ns()));
    }
    turn_.SleepUntil(wake_ns, [this] {
      // relaxed: see Serve.
      return wanted_.load(std::memory_order_relaxed) != answered_;
    });
  }
  if (started_) source_->Stop();
  writer_.Invalidate();
}

void FrameThread::DrawFrame() {
  if (!started_) {
    started_ = true;
    start_ = Guarded([this] { return source_->Start(); });
  }
  const int64_t now = MonotonicNanos();
  const std::span<std::byte> frame = writer_.Reserve();
  absl::Status drawn = start_;
  if (drawn.ok()) drawn = copied_.status;
  if (drawn.ok()) drawn = Guarded([&] { return DrawTiles(frame); });
  if (turn_.Stopping())
    return;  // the slot stays uncommitted: no reader sees it
  if (!drawn.ok()) {
    std::fill(frame.begin(), frame.end(), std::byte{0});
    if (last_error_ != drawn.message()) links_.log(drawn.message());
  }
  last_error_ = std::string(drawn.message());
  writer_.Commit({.last_reward = copied_.run.last_reward,
                  .rolling_return = copied_.run.rolling_return,
                  .step_rate_hz = step_rate_hz_},
                 Metadata(drawn));
  drawn_count_ = copied_.counted;
  drawn_at_ns_ = now;
  if (copied_.request != answered_) {
    answered_ = copied_.request;
    links_.answer(answered_);
  }
}

absl::Status FrameThread::DrawTiles(std::span<std::byte> frame) {
  for (uint32_t place = 0; place < options_.envs.size(); ++place) {
    if (turn_.Stopping()) return absl::OkStatus();
    TANDEM_RETURN_IF_ERROR(source_->Draw(place, grid_.Tile(frame, place)));
  }
  grid_.BlackenRest(frame);
  return absl::OkStatus();
}

std::string FrameThread::Metadata(const absl::Status& drawn) const {
  nlohmann::ordered_json json = {{"step", copied_.step},
                                 {"envs", options_.envs},
                                 {"rows", grid_.rows()},
                                 {"columns", grid_.columns()},
                                 {"episodes", copied_.run.episodes}};
  if (copied_.run.episodes > 0) {
    json["episode_length"] = copied_.run.episode_length;
  }
  if (!drawn.ok()) {
    json["error"] = NameOf(CodeOf(drawn));
    json["error_text"] = PrintableHead(drawn.message(), kErrorBytes);
  }
  return json.dump();
}

// Runs also while no viewer is attached, so that the first frame has the
// current rate.
void FrameThread::UpdateRate(int64_t now_ns) {
  if (now_ns - rate_since_ns_ < kRateNs) return;
  // relaxed: a statistic.
  const uint64_t steps = env_steps_.load(std::memory_order_relaxed);
  step_rate_hz_ = static_cast<double>(steps - rate_from_steps_) * 1e9 /
                  static_cast<double>(now_ns - rate_since_ns_);
  rate_since_ns_ = now_ns;
  rate_from_steps_ = steps;
}

}  // namespace tandem
