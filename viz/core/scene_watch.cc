#include "viz/core/scene_watch.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"

namespace tandem {
namespace {

constexpr int64_t kRetryNs = 250'000'000;
// An engine that refuses does so at once again: a try takes one of its slots.
constexpr int64_t kRetryRefusedNs = 4'000'000'000;
constexpr uint64_t kRatePeriodNs = 1'000'000'000;

// Returns a number that no other model of this machine has had, also if two
// watches find theirs at the same time. One thread polls all watches.
int64_t NextModel(int64_t now_ns) {
  static int64_t last = 0;
  last = std::max(last + 1, now_ns);
  return last;
}

}  // namespace

// The result of open_, from the thread.
struct SceneWatch::Opening {
  Mutex mutex;
  std::optional<absl::StatusOr<std::unique_ptr<SceneStream>>> result
      ABSL_GUARDED_BY(mutex);
};

std::shared_ptr<std::vector<uint32_t>> SceneWatch::Join() {
  auto wanted = std::make_shared<std::vector<uint32_t>>();
  viewers_.push_back(wanted);
  return wanted;
}

absl::string_view SceneWatch::StateName() const {
  constexpr std::array<absl::string_view, 5> kNames = {
      "waiting", "live", "lost", "none", "failed"};
  return kNames.at(static_cast<size_t>(state_));
}

bool SceneWatch::Poll(int64_t now_ns) {
  const int64_t since_ns = std::exchange(polled_ns_, now_ns);
  if (state_ == State::kNone || !OpenStream(now_ns) || !AskEngine()) {
    return false;
  }
  const bool attached_now = !scene_.has_value();
  if (attached_now && !Attach(now_ns)) return false;

  const FrameReader::Found found = scene_->reader().Next(&next_);
  const bool is_new = found == FrameReader::Found::kFrame;
  if (is_new) {
    // A copy has no room for more rows than it has.
    newest_ = std::make_shared<const KeptPoses>(
        KeptPoses{.at_ns = now_ns, .number = ++snapshots_, .snapshot = next_});
    tape_.Keep(newest_);
    Count(newest_->snapshot, now_ns);
    rate_.Add(now_ns);
    if (attached_now) {
      freshness_.SawOldFrame(now_ns);
    } else {
      freshness_.SawNewFrame(since_ns);
    }
  }
  if (found == FrameReader::Found::kInvalidated) {
    LoseScene("the engine has ended this scene");
  } else if (found == FrameReader::Found::kBroken) {
    LoseScene("the scene is invalid");
  } else if (scene_->writer() == AttachedScene::Writer::kGone) {
    LoseScene("the engine is gone");
  } else if (scene_->Replaced()) {
    LoseScene("another scene has taken the name");
  }
  return is_new;
}

void SceneWatch::Count(const PoseSnapshot& snapshot, int64_t now_ns) {
  double rewards = 0;
  uint32_t known = 0;
  for (uint32_t i = 0; i < snapshot.rows(); ++i) {
    const SceneRow& row = snapshot.row(i);
    if ((row.flags & kSceneUnknownReturn) != 0) continue;
    ++known;
    rewards += row.reward;
    const auto [last, is_first] = rows_.try_emplace(row.env, row);
    if (!is_first && last->second.episode + 1 == row.episode) {
      metrics_.rolling_return = last->second.episode_return;
      histories_.returns.Add(now_ns, last->second.episode_return);
      histories_.episode_lengths.Add(now_ns,
                                     static_cast<double>(last->second.step));
    }
    last->second = row;
  }
  if (known > 0) {
    metrics_.last_reward = rewards / known;
    histories_.rewards.Add(now_ns, metrics_.last_reward);
  }
  const SnapshotHead& head = snapshot.head();
  const uint64_t ns = head.monotonic_ns - counted_.monotonic_ns;
  if (ns < kRatePeriodNs) return;
  if (counted_.exchange > 0 && head.exchange >= counted_.exchange) {
    metrics_.step_rate_hz =
        static_cast<double>((head.exchange - counted_.exchange) *
                            header_.num_envs) /
        (static_cast<double>(ns) * 1e-9);
    histories_.step_rates.Add(now_ns, metrics_.step_rate_hz);
  }
  counted_ = head;
}

bool SceneWatch::OpenStream(int64_t now_ns) {
  if (stream_ != nullptr) {
    if (stream_->EngineAlive()) return true;
    LoseStream(MakeError(ErrorCode::kPeerGone, "the engine is gone"));
  }
  if (opening_ != nullptr) {
    MutexLock lock(&opening_->mutex);
    if (!opening_->result.has_value()) return false;
    absl::StatusOr<std::unique_ptr<SceneStream>> opened =
        *std::move(opening_->result);
    if (opened.ok()) {
      stream_ = *std::move(opened);
    } else {
      LoseStream(opened.status());
    }
  } else if (now_ns >= next_try_ns_) {
    next_try_ns_ = now_ns + kRetryNs;
    auto opening = std::make_shared<Opening>();
    if (thread_->Add([opening, open = open_, region = region_] {
          absl::StatusOr<std::unique_ptr<SceneStream>> opened = open(region);
          MutexLock lock(&opening->mutex);
          opening->result = std::move(opened);
        })) {
      opening_ = std::move(opening);
    }
    return false;
  }
  opening_.reset();
  return stream_ != nullptr;
}

bool SceneWatch::AskEngine() {
  std::set<uint32_t> wanted;
  std::erase_if(viewers_, [&](const auto& viewer) {
    const std::shared_ptr<std::vector<uint32_t>> envs = viewer.lock();
    if (envs != nullptr) wanted.insert(envs->begin(), envs->end());
    return envs == nullptr;
  });
  // Those of an engine before, which had more.
  wanted.erase(wanted.lower_bound(stream_->NumEnvs()), wanted.end());
  const std::vector<uint32_t> envs(wanted.begin(), wanted.end());
  if (asked_ != envs) {
    // A full ring: the next poll asks again.
    if (stream_->Want(envs).ok()) asked_ = envs;
  }
  const absl::StatusOr<std::optional<PublishedScene>> news = stream_->Next();
  if (!news.ok()) {
    LoseStream(news.status());
    return false;
  }
  published_ = published_ || news->has_value();
  return published_;
}

bool SceneWatch::Attach(int64_t now_ns) {
  if (now_ns < next_try_ns_) return false;
  next_try_ns_ = now_ns + kRetryNs;
  absl::StatusOr<AttachedScene> opened = AttachedScene::Open(region_);
  if (opened.ok() && (opened->reader().Invalidated() ||
                      opened->writer() == AttachedScene::Writer::kGone)) {
    return false;  // an old one
  }
  const uint64_t bytes = opened.ok() ? opened->reader().glb().size() : 0;
  if (opened.ok() && bytes > kMostGlbBytes) {
    SetState(State::kFailed,
             absl::StrCat("expected a scene of at most ", kMostGlbBytes >> 20,
                          " MiB, found ", bytes >> 20,
                          " MiB; use smaller meshes and textures"));
    return false;
  }
  if (!opened.ok()) {
    if (CodeOf(opened.status()) != ErrorCode::kNotReady) {
      SetState(State::kFailed, opened.status().message());
    }
    return false;
  }
  scene_.emplace(*std::move(opened));
  const std::span<const std::byte> glb = scene_->reader().glb();
  glb_ = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(glb.data()), glb.size());
  header_ = scene_->reader().header();
  model_ = NextModel(now_ns);
  newest_.reset();
  tape_.Clear();
  rows_.clear();
  counted_ = {};
  freshness_.SetLink(Freshness::Link::kAttached);
  SetState(State::kLive, "");
  return true;
}

void SceneWatch::SetState(State state, absl::string_view reason) {
  state_ = state;
  reason_ = std::string(reason);
}

void SceneWatch::LoseStream(const absl::Status& why) {
  stream_.reset();
  asked_.reset();
  published_ = false;
  LoseScene(why.message());
  const ErrorCode code = CodeOf(why);
  if (code == ErrorCode::kUnsupported) {
    SetState(State::kNone, why.message());
  } else if (code != ErrorCode::kPeerGone && code != ErrorCode::kNotReady) {
    SetState(State::kFailed, why.message());
    next_try_ns_ = polled_ns_ + kRetryRefusedNs;
  }
}

void SceneWatch::LoseScene(absl::string_view reason) {
  scene_.reset();
  freshness_.SetLink(model_ == 0 ? Freshness::Link::kNoRun
                                 : Freshness::Link::kLost);
  SetState(model_ == 0 ? State::kWaiting : State::kLost, reason);
}

}  // namespace tandem
