// PageView: a run as one browser shows it: its pictures, or its scene.
//
// Data flow: RunFeed, SceneWatch -> what is new for this browser -> messages
// (page_session.h).
// Ownership: one PageSession; the server's one thread.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "viz/core/frame_tape.h"
#include "viz/core/freshness.h"
#include "viz/core/playback.h"
#include "viz/core/scene_watch.h"
#include "viz/web/picture_pace.h"
#include "viz/web/run_feed.h"
#include "viz/web/scene_pace.h"
#include "viz/web/series_cursor.h"

namespace tandem {

// Returns a binary message: the head's length, the head, the content.
std::string BinaryMessage(const nlohmann::json& head,
                          std::span<const uint8_t> content);

// A frame's step, or null.
nlohmann::json StepOf(const FrameMetadata& metadata);

struct PageView {
  int64_t id = 0;
  std::shared_ptr<RunFeed> feed;
  std::shared_ptr<void> pictures;     // nullptr: the scene is shown
  std::shared_ptr<SceneWatch> scene;  // nullptr: not wanted
  int64_t scene_due_ns = 0;  // without it until then, pictures are shown
  std::shared_ptr<std::vector<uint32_t>> envs;  // of scene
  ScenePace scene_pace;
  std::string scene_sent;                         // SceneText
  uint64_t poses_sent = 0;                        // KeptPoses::number
  std::shared_ptr<const KeptPoses> sought_poses;  // to be sent
  uint32_t width = 0;
  PicturePace pace;
  Playback playback;
  // The tape's end at the freeze, to which the browser's times refer: the tape
  // goes on. nullopt: live.
  std::optional<int64_t> frozen_end_ns;
  uint64_t seen_frames = 0;  // of the feed, sent or skipped
  bool has_news = false;     // a frame that was not sent yet
  // The time of the newest picture, if its quality was not the best.
  std::optional<int64_t> coarse_since_ns;
  std::shared_ptr<const KeptFrame> sought;  // to be sent
  bool snapshot_wanted = false;
  int64_t next_numbers_ns = 0;
  SeriesCursor rewards;
  SeriesCursor returns;
  SeriesCursor step_rates;
  SeriesCursor episode_lengths;

  // Shows the scene if it is wanted and there, or may soon be; else pictures.
  void Choose(int64_t now_ns);
  // nullptr: pictures are shown.
  const SceneWatch* shown_scene() const {
    return pictures == nullptr ? scene.get() : nullptr;
  }
  // Of what is shown.
  const Freshness& freshness() const {
    return shown_scene() != nullptr ? scene->freshness()
                                    : feed->watch().freshness();
  }
  // How long before the tape's end at the freeze.
  int64_t BeforeMs(int64_t at_ns) const {
    return std::max<int64_t>(0, frozen_end_ns.value_or(at_ns) - at_ns) /
           1'000'000;
  }
  // Calls `use` with the tape, and with what of it is to be sent.
  auto WithTape(const auto& use) {
    return shown_scene() != nullptr ? use(scene->tape(), &sought_poses)
                                    : use(feed->tape(), &sought);
  }

  // Returns the message "view".
  std::string NumbersText(int64_t now_ns, bool records_scene);
  // Returns the message "scene"; nullopt: nothing is new.
  std::optional<std::string> SceneText();
  // Returns the snapshot that was sought, or else the newest one, if the
  // browser may get one. Each that has to be acknowledged gets ++*sent.
  std::optional<std::string> NextPoses(uint64_t* sent);
};

}  // namespace tandem
