#include "engine_adapter/scene/scene_thread.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/os/blocked_signals.h"
#include "base/os/machine.h"

namespace tandem {
namespace {

constexpr int64_t kRefreshNs = 1'000'000'000;

}  // namespace

SceneThread::SceneThread(std::string name, uint32_t num_envs,
                         std::function<void()> wake)
    : name_(std::move(name)), num_envs_(num_envs), wake_(std::move(wake)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { Run(); });
}

SceneThread::~SceneThread() {
  turn_.Stop();
  thread_.join();
}

void SceneThread::Run() {
  // Users and tests find the thread by this name.
  NameThread("tandem-scene");
  GoToBackground();
  const CoreWait line;
  while (turn_.Await(kNextExchangeNs, wake_)) {
    if (copies_.make != nullptr) {
      MakeSegment();
      continue;
    }
    if (hz_ != copies_.hz) pace_.emplace(hz_ = copies_.hz);
    const int64_t begin_ns = MonotonicNanos();
    const int64_t waited_ns = line.Nanos();
    if (segment_ && copies_.snapshot.rows() > 0) {
      (void)segment_->Publish(copies_.snapshot);  // was made for this segment
    }
    pace_->Drew(begin_ns, MonotonicNanos(), line.Nanos() - waited_ns);
    AwaitNews();
  }
  segment_.reset();
}

void SceneThread::MakeSegment() {
  segment_.reset();  // the name becomes free, and readers see its end
  made_ = Made();
  made_.generation = copies_.generation;
  made_.status = Guarded([&]() -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const SceneModel model,
                            std::exchange(copies_.make, nullptr)());
    TANDEM_ASSIGN_OR_RETURN(auto segment, OwnedSceneSegment::Create(
                                              name_,
                                              {.num_envs = num_envs_,
                                               .nodes = model.nodes,
                                               .generation = made_.generation},
                                              model.glb));
    made_.nodes = model.nodes;
    made_.max_rows = segment.max_rows();
    made_.segment = segment.name();
    segment_.emplace(std::move(segment));
    return absl::OkStatus();
  });
}

void SceneThread::AwaitNews() {
  const int64_t refresh_ns = MonotonicNanos() + kRefreshNs;
  int64_t wake_ns = pace_->due_ns();
  do {
    turn_.SleepUntil(wake_ns, [] { return false; });
    wake_ns = std::min(refresh_ns, MonotonicNanos() + pace_->period_ns());
    // relaxed: see TellNews.
  } while (!turn_.Stopping() && wake_ns < refresh_ns &&
           news_.load(std::memory_order_relaxed) == copies_.news);
}

}  // namespace tandem
