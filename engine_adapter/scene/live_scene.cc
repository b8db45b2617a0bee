#include "engine_adapter/scene/live_scene.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/os/blocked_signals.h"
#include "base/os/machine.h"
#include "engine_adapter/frames/copy_turn.h"
#include "engine_adapter/frames/frame_pace.h"
#include "transport/owned_scene_segment.h"
#include "transport/pose_snapshot.h"

namespace tandem {
namespace {

constexpr int64_t kSignOfLifeNs = 1'000'000'000;

}  // namespace

// Makes segments and publishes snapshots in parallel with an engine's steps.
// Copies and made belong to the thread of turn. The thread asks for copies at a
// rate, after news; without news once a second,
// so that viewers see that the engine lives. It runs in the background of the
// steps, as the render thread does.
//
//   word   writer    readers  publishes             initially
//   news_  stepping  scene    no data: new results  0
class SceneThread {
 public:
  // What the stepping thread gives.
  struct Copies {
    double hz = 0;            // snapshots a second
    uint32_t generation = 0;  // of `make`
    SceneSource::Make make;   // not empty: make a segment first
    PoseSnapshot snapshot;    // for the segment; without rows: none
    uint64_t news = 0;
  };
  // What the thread has made; generation 0: nothing.
  struct Made {
    uint32_t generation = 0;
    uint32_t nodes = 0;
    uint32_t max_rows = 0;
    std::string segment;
    absl::Status status;  // an error: there is no segment
  };

  SceneThread(std::string name, uint32_t num_envs, std::function<void()> wake);
  // Stops, and blocks until the thread has ended.
  ~SceneThread();
  SceneThread(const SceneThread&) = delete;
  SceneThread& operator=(const SceneThread&) = delete;

  // The stepping thread calls these.
  CopyTurn& turn() { return turn_; }
  Copies& copies() { return copies_; }
  const Made& made() const { return made_; }
  void TellNews(uint64_t news) {
    // relaxed: the thread only compares it, and then waits for the copies.
    news_.store(news, std::memory_order_relaxed);
  }
  // The thread ends after its work of the moment, and removes the segment. Does
  // not wait.
  void Stop() { turn_.Stop(); }

 private:
  void Run();
  void MakeSegment();
  void AwaitNews();

  const std::string name_;
  const uint32_t num_envs_;
  const std::function<void()> wake_;
  Copies copies_;
  Made made_;
  CopyTurn turn_;
  std::atomic<uint64_t> news_{0};

  // Used by the thread.
  alignas(128) std::optional<OwnedSceneSegment> segment_;
  std::optional<FramePace> pace_;
  double hz_ = 0;  // of pace_

  std::thread thread_;  // last: uses all of the above
};

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
  const int64_t refresh_ns = MonotonicNanos() + kSignOfLifeNs;
  int64_t wake_ns = pace_->due_ns();
  do {
    turn_.SleepUntil(wake_ns, [] { return false; });
    wake_ns = std::min(refresh_ns, MonotonicNanos() + pace_->period_ns());
    // relaxed: see TellNews.
  } while (!turn_.Stopping() && wake_ns < refresh_ns &&
           news_.load(std::memory_order_relaxed) == copies_.news);
}

LiveScene::LiveScene(SceneSource* source, uint32_t num_envs, bool has_rewards,
                     Links links)
    : source_(source),
      num_envs_(num_envs),
      has_rewards_(has_rewards),
      links_(std::move(links)) {}

LiveScene::~LiveScene() = default;

LiveScene::Watcher LiveScene::Watch(std::vector<uint32_t> envs, double hz) {
  const bool is_first = watches_.empty();
  const auto watch = watches_.insert(
      watches_.end(), {.envs = std::move(envs),
                       .hz = hz > 0 ? std::min(hz, links_.hz) : links_.hz});
  Reselect();
  if (is_first) {
    statistics_ = std::make_unique<RunStatistics>(num_envs_, has_rewards_);
    thread_.reset();  // of an earlier watcher
    thread_ = std::make_unique<SceneThread>(links_.name(), num_envs_,
                                            links_.wake_step_thread);
    links_.watched(true);
  }
  return Watcher(&*watch, [this, watch](const void*) { Leave(watch); });
}

void LiveScene::Leave(std::list<Selection>::iterator watch) {
  watches_.erase(watch);
  if (!watches_.empty()) {
    Reselect();
    return;
  }
  thread_->Stop();
  statistics_.reset();
  published_ = {};
  max_rows_ = 0;
  links_.watched(false);
}

// The union of all watchers' selections becomes news.
void LiveScene::Reselect() {
  std::set<uint32_t> envs;
  wanted_.hz = 0;
  for (const Selection& watch : watches_) {
    envs.insert(watch.envs.begin(), watch.envs.end());
    wanted_.hz = std::max(wanted_.hz, watch.hz);
  }
  wanted_.envs.assign(envs.begin(), envs.end());
  PublishThoseThatFit();
  ++news_;
}

void LiveScene::PublishThoseThatFit() {
  published_.envs = wanted_.envs;
  published_.envs.resize(std::min<size_t>(wanted_.envs.size(), max_rows_));
}

bool LiveScene::IsAsked() const {
  thread_->TellNews(news_);
  return thread_->turn().IsAsked();
}

std::span<const uint32_t> LiveScene::envs() const {
  return published_.envs.empty() ? wanted_.envs : published_.envs;
}

void LiveScene::Count(const CountedExchange& exchange) {
  statistics_->Count(exchange);
  ++news_;
}

void LiveScene::ClearClientState() {
  statistics_->Clear();
  ++news_;
}

void LiveScene::Serve(uint64_t exchange) {
  thread_->TellNews(news_);
  (void)thread_->turn().Give([&] {
    SceneThread::Copies& copies = thread_->copies();
    const SceneThread::Made& made = thread_->made();
    copies.hz = wanted_.hz;
    copies.news = news_;
    copies.snapshot.Resize(made.nodes, 0);
    const absl::Status status = Guarded([&] {
      const uint64_t version = source_->Version(wanted_.envs.front());
      if (generation_ == 0 || version != version_) {
        version_ = version;
        ++generation_;
      }
      if (made.generation != generation_) {
        copies.generation = generation_;
        copies.make = source_->Describe(wanted_.envs.front());
      } else if (made.status.ok()) {
        max_rows_ = made.max_rows;
        PublishThoseThatFit();
        Copy(exchange, made.nodes, &copies.snapshot);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) copies.snapshot.Resize(made.nodes, 0);  // incomplete
    published_.status = status.ok() ? made.status : status;
    published_.segment = made.segment;
    published_.generation = made.generation;
  });
}

void LiveScene::Copy(uint64_t exchange, uint32_t nodes, PoseSnapshot* into) {
  const std::span<const uint32_t> envs = published_.envs;
  const auto rows = static_cast<uint32_t>(envs.size());
  into->Resize(nodes, rows);
  into->head().exchange = exchange;
  into->head().monotonic_ns = static_cast<uint64_t>(MonotonicNanos());
  const bool has_returns = has_rewards_ && !links_.has_own_rewards();
  for (uint32_t i = 0; i < rows; ++i) {
    const RunStatistics::Episode episode = statistics_->EpisodeOf(envs[i]);
    SceneRow& row = into->row(i);
    row = {.env = envs[i],
           .flags = (has_returns ? 0 : kSceneUnknownReturn) |
                    (links_.step_secs > 0 ? 0 : kSceneUnknownTime),
           .episode = episode.number,
           .step = episode.steps,
           .sim_time = static_cast<double>(episode.steps) * links_.step_secs,
           .episode_return = has_returns ? episode.total_reward : 0,
           .reward = has_returns ? episode.last_reward : 0};
  }
  source_->Capture(envs, into);
}

}  // namespace tandem
