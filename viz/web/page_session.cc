#include "viz/web/page_session.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "schema/layout/service.h"
#include "viz/core/async_daemon_client.h"
#include "viz/core/freshness.h"
#include "viz/core/run_curves.h"
#include "viz/web/json_text.h"
#include "viz/web/message_fields.h"
#include "viz/web/page_view.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kStillNs = 300'000'000;
// The list of runs takes at most this share of a line.
constexpr int64_t kListBytesPerSec = 20'000;
constexpr size_t kMostSceneEnvs = 4096;
constexpr size_t kMostCurves = 64;  // of a question

// Returns how long to wait after a list of so many bytes, at least `least_ns`.
int64_t ListPauseNs(size_t bytes, int64_t least_ns) {
  return std::max(least_ns,
                  static_cast<int64_t>(bytes) * kSecond / kListBytesPerSec);
}

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return Printable(name.data());
}

// Reads an action; each has fields of its own.
PageAction ActionOf(MessageFields* fields) {
  const std::string what = fields->Text("what");
  const std::string target = fields->TextIfThere("target");
  const bool on = fields->BoolIfThere("on");
  if (what == "switch") {
    return EngineCommand{target,
                         SwitchService{fields->TextIfThere("service"), on}};
  }
  if (what == "pause") return EngineCommand{target, PauseEngine{on}};
  if (what == "step") return EngineCommand{target, StepEngine()};
  if (what == "mode") {
    return EngineCommand{target, SetMode{fields->TextIfThere("mode"),
                                         fields->NumberIfThere("factor", 1)}};
  }
  if (what == "record") return RecordRun{target, on};
  if (what == "submit") {
    return SubmitRun{
        fields->TextIfThere("text", AsyncDaemonClient::kMostConfigBytes)};
  }
  if (what == "cancel") return CancelRun{target};
  if (what == "hold") return PauseRun{target, on};
  return UnknownAction{what};
}

}  // namespace

PageSession::PageSession(PageModel* page_model) : model_(page_model) {}

PageSession::~PageSession() = default;

bool PageSession::Receive(absl::string_view text, int64_t now_ns) {
  MessageFields fields(text);
  const std::string what = fields.Text("do");
  if (what == "pong") {
    if (hello_ns_.has_value() && !line_ns_.has_value()) {
      line_ns_ = now_ns - *hello_ns_;
      for (auto& [id, view] : views_) view->pace.MeasuredLine(*line_ns_);
    }
    return true;
  }
  if (what == "panel") {
    panel_ = fields.Text("region");
    next_panel_ns_ = 0;
    panel_sent_.clear();
    return fields.ok();
  }
  if (what == "daemon") {
    daemon_ = fields.Bool("on");
    next_daemon_ns_ = 0;
    daemon_report_.reset();
    daemon_runs_.clear();
    return fields.ok();
  }
  if (what == "act" || what == "curves" || what == "log") {
    return Ask(what, &fields);
  }
  return ReceiveForView(what, &fields, now_ns);
}

bool PageSession::Ask(const std::string& what, MessageFields* fields) {
  if (waiting_.size() >= kMostActions) return false;
  Waiting waiting = {.id = fields->Integer("id", 0, kMaxMetadataInteger),
                     .result = nullptr,
                     .is_action = what == "act"};
  if (what == "act") {
    const PageAction action = ActionOf(fields);
    if (fields->ok()) waiting.result = model_->Act(action);
  } else if (what == "curves") {
    const std::string run = fields->Text("run");
    std::vector<uint32_t> places =
        fields->IntegersIfThere("which", kMostCurves);
    const auto points =
        static_cast<size_t>(fields->Integer("points", 1, Curve::kBuckets));
    const bool names = fields->BoolIfThere("names");
    if (fields->ok()) {
      waiting.result = model_->Curves(run, std::move(places), points, names);
    }
  } else {
    const std::string run = fields->Text("run");
    const std::string which = fields->Text("which");
    const std::optional<int64_t> end =
        fields->IntegerIfThere("end", 0, kMaxMetadataInteger);
    if (fields->ok()) waiting.result = model_->Log(run, which, end);
  }
  if (waiting.result == nullptr) return false;
  waiting_.push_back(std::move(waiting));
  return true;
}

bool PageSession::ReceiveForView(const std::string& what, MessageFields* fields,
                                 int64_t now_ns) {
  const int64_t id = fields->Integer("view", 1, kMaxMetadataInteger);
  if (what == "watch") {
    const std::string run = fields->Text("run");
    const auto width =
        static_cast<uint32_t>(fields->Integer("width", 1, 16'384));
    return fields->ok() && Watch(id, run, width);
  }
  if (!fields->ok()) return false;
  const auto found = views_.find(id);
  // A message may cross the end of its view.
  if (found == views_.end()) return true;
  PageView& view = *found->second;
  if (what == "unwatch") {
    views_.erase(found);
  } else if (what == "size") {
    view.width = static_cast<uint32_t>(fields->Integer("width", 1, 16'384));
  } else if (what == "scene") {
    if (view.scene == nullptr) {
      view.scene = model_->Scene(view.feed.get());
      view.envs = view.scene->Join();
      view.scene_due_ns = now_ns + kSecond;
      view.scene_sent.clear();
      view.scene_pace = {};
    }
    *view.envs = fields->IntegersIfThere("envs", kMostSceneEnvs);
    view.poses_sent = 0;
    view.next_numbers_ns = 0;
    view.Choose(now_ns);
  } else if (what == "unscene") {
    view.envs.reset();
    view.scene.reset();
    view.Choose(now_ns);
  } else if (what == "posed") {
    view.scene_pace.Posed(
        static_cast<uint64_t>(fields->Integer("sent", 1, kMaxMetadataInteger)));
  } else if (what == "drawn") {
    view.pace.Drawn(
        static_cast<uint64_t>(fields->Integer("sent", 1, kMaxMetadataInteger)),
        now_ns);
  } else if (what == "freeze") {
    view.playback.Freeze(now_ns, view.freshness());
    if (!view.frozen_end_ns.has_value()) {
      view.frozen_end_ns =
          view.WithTape([](const auto& tape, auto) { return tape.end_ns(); });
    }
  } else if (what == "live") {
    view.playback.Resume();
    view.frozen_end_ns.reset();
    view.sought.reset();
    view.sought_poses.reset();
    view.has_news = true;
    view.poses_sent = 0;
  } else if (what == "snapshot") {
    view.snapshot_wanted = true;
  } else if (what == "seek") {
    const int64_t before_ms = fields->Integer("before_ms", 0, 3'600'000);
    if (!fields->ok()) return false;
    view.WithTape([&](const auto& tape, auto* sought) {
      if (!view.frozen_end_ns.has_value()) view.frozen_end_ns = tape.end_ns();
      const int64_t since_ns = tape.end_ns() - *view.frozen_end_ns;
      *sought =
          view.playback.SeekTo(before_ms * kNsPerMs + since_ns, now_ns, tape);
    });
  } else {
    return false;
  }
  return fields->ok();
}

bool PageSession::Watch(int64_t id, const std::string& run, uint32_t width) {
  if (views_.size() >= kMostViews || views_.contains(id)) return false;
  std::shared_ptr<RunFeed> feed = model_->Feed(run);
  if (feed == nullptr) {
    if (replies_.size() >= kMostViews) return false;
    replies_.push_back(TextOfJson(
        {{"is", "refused"},
         {"view", id},
         {"error", absl::StrCat("expected at most ", PageModel::kMostFeeds,
                                " watched runs, found that many; close "
                                "others")}}));
    return true;
  }
  auto view = std::make_unique<PageView>();
  view->id = id;
  view->width = width;
  view->has_news = feed->watch().frame().number > 0;
  view->seen_frames = feed->watch().frames();
  view->pictures = feed->WatchPictures();
  view->feed = std::move(feed);
  if (line_ns_.has_value()) view->pace.MeasuredLine(*line_ns_);
  views_.emplace(id, std::move(view));
  return true;
}

void PageSession::Tick() {
  for (auto& [id, view] : views_) {
    const uint64_t frames = view->feed->watch().frames();
    if (frames == view->seen_frames) continue;
    view->seen_frames = frames;
    view->has_news = true;
    if (!view->playback.frozen() && !view->pace.MaySend()) {
      view->pace.Skipped();
    }
  }
}

std::optional<PageMessage> PageSession::Next(int64_t now_ns) {
  if (std::optional<std::string> text = NextText(now_ns)) {
    return PageMessage{.binary = false, .bytes = *std::move(text)};
  }
  std::optional<std::string> content = NextPoses();
  if (!content.has_value()) content = NextPicture(now_ns);
  if (content.has_value()) {
    return PageMessage{.binary = true, .bytes = *std::move(content)};
  }
  return std::nullopt;
}

std::optional<std::string> PageSession::NextText(int64_t now_ns) {
  if (!hello_ns_.has_value()) {
    hello_ns_ = now_ns;
    return TextOfJson({{"is", "hello"},
                       {"host", HostName()},
                       {"control", model_->options().control},
                       {"daemon", Printable(model_->options().daemon_target)},
                       {"example", std::string(kExampleConfig)},
                       {"modes", EngineControl::ModeNames()},
                       {"services", kServiceNames}});
  }
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    const std::optional<absl::StatusOr<std::string>> result = at->result->Get();
    if (!result.has_value()) continue;
    if (!at->is_action) {
      // A line of a log is made printable where it is read; JSON stays JSON.
      const std::string answer =
          absl::StrCat(R"({"is":"answer","id":)", at->id, R"(,"error":)",
                       TextOfJson(PrintableLines(result->status().message())),
                       R"(,"answer":)", result->ok() ? **result : "null", "}");
      waiting_.erase(at);
      return answer;
    }
    const Json done = {{"is", "done"},
                       {"id", at->id},
                       {"text", result->ok() ? Printable(**result) : ""},
                       {"error", PrintableLines(result->status().message())}};
    waiting_.erase(at);
    // What the browser then sees includes the action.
    acted_ns_ = now_ns;
    next_panel_ns_ = 0;
    panel_sent_.clear();
    next_daemon_ns_ = 0;
    return TextOfJson(done);
  }
  if (!replies_.empty()) {
    std::string reply = std::move(replies_.front());
    replies_.pop_front();
    return reply;
  }
  if (model_->runs_version() != runs_version_ && now_ns >= next_runs_ns_) {
    runs_version_ = model_->runs_version();
    const std::string& runs = model_->runs_json();
    next_runs_ns_ = now_ns + ListPauseNs(runs.size(), kSecond);
    return absl::StrCat(R"({"is":"runs","runs":)", runs, "}");
  }
  for (auto& [id, view] : views_) {
    view->Choose(now_ns);
    if (std::optional<std::string> text = view->SceneText()) return text;
    if (now_ns >= view->next_numbers_ns) {
      view->next_numbers_ns = now_ns + kNumbersNs;
      return view->NumbersText(now_ns, model_->RecordsScene(view->feed->run()));
    }
  }
  if (!panel_.empty() && now_ns >= next_panel_ns_) {
    next_panel_ns_ = now_ns + kNumbersNs;
    const std::string report = model_->Report(panel_, now_ns, acted_ns_);
    if (!report.empty() && report != panel_sent_) {
      panel_sent_ = report;
      return absl::StrCat(R"({"is":"panel","region":)", TextOfJson(panel_),
                          R"(,"report":)", report, "}");
    }
  }
  if (daemon_ && now_ns >= next_daemon_ns_) {
    next_daemon_ns_ = now_ns + kNumbersNs;
    if (std::optional<std::string> text = DaemonText(now_ns)) {
      next_daemon_ns_ = now_ns + ListPauseNs(text->size(), kNumbersNs);
      return text;
    }
  }
  return std::nullopt;
}

std::optional<std::string> PageSession::DaemonText(int64_t now_ns) {
  const std::shared_ptr<const PageModel::DaemonTexts> report =
      model_->DaemonReport(now_ns, acted_ns_);
  if (report == nullptr || report == daemon_report_) return std::nullopt;
  const bool is_first = daemon_report_ == nullptr;
  const bool has_new_head = is_first || report->head != daemon_report_->head;
  daemon_report_ = report;
  std::vector<absl::string_view> changed;
  std::set<absl::string_view> there;
  for (const auto& [id, run] : report->runs) {
    there.insert(id);
    std::string& sent = daemon_runs_[id];
    if (sent == run) continue;
    sent = run;
    changed.push_back(run);
  }
  Json gone = Json::array();
  std::erase_if(daemon_runs_, [&](const auto& item) {
    if (there.contains(item.first)) return false;
    gone.push_back(item.first);
    return true;
  });
  if (!has_new_head && changed.empty() && gone.empty()) return std::nullopt;
  return absl::StrCat(R"({"is":"daemon","head":)", report->head, R"(,"all":)",
                      is_first ? "true" : "false", R"(,"gone":)",
                      TextOfJson(gone), R"(,"runs":[)",
                      absl::StrJoin(changed, ","), "]}");
}

std::optional<std::string> PageSession::NextPoses() {
  for (auto& [id, view] : views_) {
    std::optional<std::string> message = view->NextPoses(&sent_);
    if (message.has_value()) return message;
  }
  return std::nullopt;
}

std::optional<std::string> PageSession::NextPicture(int64_t now_ns) {
  for (auto& [id, view] : views_) {
    if (view->sought == nullptr) continue;
    const std::shared_ptr<const KeptFrame> kept = std::move(view->sought);
    view->sought.reset();
    const Json head = {{"view", id},
                       {"sent", 0},  // the browser does not acknowledge it
                       {"width", kept->picture.width},
                       {"height", kept->picture.height},
                       {"step", StepOf(kept->metadata)},
                       {"tiles", kept->metadata.tiles},
                       {"rows", kept->metadata.grid.rows},
                       {"columns", kept->metadata.grid.columns},
                       {"before_ms", view->BeforeMs(kept->at_ns)}};
    return BinaryMessage(head, kept->picture.file);
  }
  for (auto& [id, view] : views_) {
    if (!std::exchange(view->snapshot_wanted, false)) continue;
    const std::shared_ptr<const Picture> picture = view->feed->EncodeLossless();
    if (picture == nullptr) continue;
    const Json head = {{"view", id},
                       {"sent", 0},
                       {"png", true},
                       {"step", StepOf(view->feed->watch().metadata())}};
    return BinaryMessage(head, picture->file);
  }
  // Begins behind the view that got the picture before.
  auto at = views_.upper_bound(last_view_);
  for (size_t i = 0; i < views_.size(); ++i, ++at) {
    if (at == views_.end()) at = views_.begin();
    PageView& view = *at->second;
    // A still image is sent once more, in the best quality.
    const bool sharpens = !view.has_news && view.pace.IsIdle() &&
                          view.coarse_since_ns.has_value() &&
                          now_ns - *view.coarse_since_ns > kStillNs;
    if (view.pictures == nullptr || (!view.has_news && !sharpens) ||
        view.playback.frozen() || !view.pace.MaySend()) {
      continue;
    }
    view.has_news = false;
    view.coarse_since_ns.reset();
    if (!sharpens && view.pace.level() > 0) view.coarse_since_ns = now_ns;
    const std::shared_ptr<const Picture> picture = view.feed->Encode(
        sharpens ? PicturePace::kBest : view.pace.quality(), view.width);
    if (picture == nullptr) continue;
    last_view_ = at->first;
    view.pace.Sent(++sent_, now_ns);
    const FrameMetadata& metadata = view.feed->watch().metadata();
    const Json head = {
        {"view", at->first},          {"sent", sent_},
        {"width", picture->width},    {"height", picture->height},
        {"step", StepOf(metadata)},   {"tiles", metadata.tiles},
        {"rows", metadata.grid.rows}, {"columns", metadata.grid.columns}};
    return BinaryMessage(head, picture->file);
  }
  return std::nullopt;
}

}  // namespace tandem
