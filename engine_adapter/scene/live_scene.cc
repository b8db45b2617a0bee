#include "engine_adapter/scene/live_scene.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "engine_adapter/scene/scene_thread.h"

namespace tandem {

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
