#include "viz/web/page_view.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "schema/layout/scene.h"
#include "viz/web/json_text.h"
#include "viz/web/page_files.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr int64_t kNsPerMs = 1'000'000;

// Returns the rows of these environments; {}: all.
std::vector<uint8_t> RowsOf(const PoseSnapshot& snapshot,
                            const std::vector<uint32_t>& envs) {
  std::vector<uint8_t> rows;
  for (uint32_t i = 0; i < snapshot.rows(); ++i) {
    if (!envs.empty() && !absl::c_linear_search(envs, snapshot.row(i).env)) {
      continue;
    }
    const auto* const row = reinterpret_cast<const uint8_t*>(&snapshot.row(i));
    rows.insert(rows.end(), row, row + SceneRowBytes(snapshot.nodes()));
  }
  return rows;
}

}  // namespace

std::string BinaryMessage(const Json& head, std::span<const uint8_t> content) {
  static_assert(std::endian::native == std::endian::little);
  const std::string text = TextOfJson(head);
  const auto bytes = static_cast<uint32_t>(text.size());
  std::string message(sizeof(bytes), '\0');
  std::memcpy(message.data(), &bytes, sizeof(bytes));
  absl::StrAppend(&message, text);
  message.append(reinterpret_cast<const char*>(content.data()), content.size());
  return message;
}

Json StepOf(const FrameMetadata& metadata) {
  return metadata.step.has_value() ? Json(*metadata.step) : Json(nullptr);
}

void PageView::Choose(int64_t now_ns) {
  const bool in_scene =
      scene != nullptr && (scene->model() != 0 || now_ns < scene_due_ns);
  if (in_scene == (pictures == nullptr)) return;
  pictures = in_scene ? nullptr : feed->WatchPictures();
  // The browser then gets all of the others.
  rewards = returns = step_rates = episode_lengths = SeriesCursor();
}

std::string PageView::NumbersText(int64_t now_ns, bool records_scene) {
  const FrameWatch& watch = feed->watch();
  const SceneWatch* const shown = shown_scene();
  const bool is_empty =
      shown == nullptr ? watch.frame().number == 0 : shown->newest() == nullptr;
  const Frame& frame = watch.frame();
  const FrameMetrics& metrics =
      shown == nullptr ? frame.metrics : shown->metrics();
  const RunHistories& histories =
      shown == nullptr ? watch.histories() : shown->histories();
  const auto of_frame = [&](double value) {
    return is_empty ? Json() : NumberOrNull(value);
  };
  Json json = {
      {"is", "view"},
      {"view", id},
      {"state", std::string(FreshnessName(freshness().StateAt(now_ns)))},
      {"reason", shown == nullptr ? watch.reason() : shown->reason()},
      {"frozen", playback.frozen()},
      {"age",
       is_empty ? Json() : Json(playback.AgeTextAt(now_ns, freshness()))},
      {"fps",
       NumberOrNull(
           std::round((shown == nullptr ? watch.FramesPerSecondAt(now_ns)
                                        : shown->SnapshotsPerSecondAt(now_ns)) *
                      10) /
           10)},
      {"dropped", watch.dropped()},
      {"episodes", nullptr},
      {"step", StepOf(watch.metadata())},
      {"error",
       watch.metadata().error.empty() ? feed->error() : watch.metadata().error},
      {"recording", feed->recorder() != nullptr || records_scene},
      {"tape_ms", WithTape([](const auto& tape, auto) {
         return (tape.end_ns() - tape.begin_ns()) / kNsPerMs;
       })},
      {"level", pace.level()},
      {"width", frame.width},
      {"height", frame.height},
      {"reward", of_frame(metrics.last_reward)},
      {"return", of_frame(metrics.rolling_return)},
      {"step_rate", of_frame(metrics.step_rate_hz)},
      {"series",
       {{"reward", rewards.Next(histories.rewards)},
        {"return", returns.Next(histories.returns)},
        {"step rate", step_rates.Next(histories.step_rates)},
        {"episode length", episode_lengths.Next(histories.episode_lengths)}}}};
  if (const std::optional<int64_t> episodes = watch.episodes()) {
    json["episodes"] = *episodes;
  }
  if (const std::optional<int64_t> trip = pace.round_trip_ns()) {
    json["round_trip_ms"] = *trip / kNsPerMs;
  }
  return TextOfJson(json);
}

std::optional<std::string> PageView::SceneText() {
  if (scene == nullptr) return std::nullopt;
  std::string text = TextOfJson(
      {{"is", "scene"},
       {"view", id},
       {"state", std::string(scene->StateName())},
       {"reason", PrintableLines(scene->reason())},
       {"glb", absl::StrCat(kScenePath, scene->model(), kSceneEnding)},
       {"nodes", scene->header().nodes},
       {"num_envs", scene->header().num_envs}});
  if (text == scene_sent) return std::nullopt;
  scene_sent = text;
  return text;
}

std::optional<std::string> PageView::NextPoses(uint64_t* sent) {
  if (shown_scene() == nullptr) return std::nullopt;
  std::shared_ptr<const KeptPoses> poses = std::exchange(sought_poses, nullptr);
  const bool is_past = poses != nullptr;
  if (!is_past) {
    poses = scene->newest();
    if (poses == nullptr || poses->number <= poses_sent || playback.frozen() ||
        !scene_pace.MaySend()) {
      return std::nullopt;
    }
    poses_sent = poses->number;
    scene_pace.Sent(++*sent);
  }
  const SnapshotHead& snapshot = poses->snapshot.head();
  Json head = {{"view", id},
               {"sent", is_past ? 0 : *sent},
               {"poses", true},
               {"exchange", snapshot.exchange},
               {"time_ms", static_cast<double>(snapshot.monotonic_ns) * 1e-6}};
  if (is_past) head["before_ms"] = BeforeMs(poses->at_ns);
  return BinaryMessage(head, RowsOf(poses->snapshot, *envs));
}

}  // namespace tandem
