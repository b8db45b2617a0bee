#include "viz/web/page_model.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/quoted.h"
#include "viz/core/daemon_client.h"
#include "viz/core/file_name.h"
#include "viz/core/log_tail.h"
#include "viz/web/json_text.h"
#include "viz/web/scene_replay.h"

namespace tandem {
namespace {

nlohmann::json RunJson(const RunEntry& run) {
  const std::string shown = Printable(run.run);
  return {
      {"run", shown},
      {"kind", run.kind == RunEntry::Kind::kRegion ? "engine" : "frames"},
      {"task", Printable(run.task)},
      {"num_envs", run.num_envs},
      {"width", run.width},
      {"height", run.height},
      {"problem", Printable(run.problem)},
      {"foreign", run.is_anothers},
      // A name that is not printable cannot be sent back.
      {"watchable", run.width > 0 && shown == run.run},
      {"moving", run.moving},
      {"frames", run.frames},
      {"job", Printable(run.daemon_run)},
      {"return", run.frames == 0 ? nullptr : NumberOrNull(run.rolling_return)},
      {"steps_per_second", NumberOrNull(run.step_rate_hz)}};
}

nlohmann::json DaemonRunJson(const DaemonRun& run) {
  nlohmann::json attempts = nlohmann::json::array();
  for (const RunAttempt& attempt : run.attempts) {
    attempts.push_back({attempt.number, attempt.started_secs,
                        attempt.ended_secs, PrintableLines(attempt.reason)});
  }
  nlohmann::json parameters = nlohmann::json::object();
  for (const auto& [name, value] : run.parameters) {
    parameters[Printable(name)] = Printable(value);
  }
  return {{"run", Printable(run.run_id)},
          {"name", Printable(run.name)},
          {"state", run.state},
          {"state_text", StateText(run)},
          {"facts", FactsText(run)},
          {"evaluation", run.evaluation},
          {"ended", run.has_ended},
          {"reason", PrintableLines(run.reason)},
          {"failure", Printable(run.failure_line)},
          {"remark", Printable(run.remark)},
          {"created", run.created_secs},
          {"steps", run.steps},
          {"episodes", run.episodes},
          {"scalars", run.scalars},
          {"mean_return", NumberOrNull(run.mean_return.value_or(NAN))},
          {"mean_of", run.mean_of},
          {"steps_per_second", NumberOrNull(run.steps_per_second)},
          {"episodes_per_second", NumberOrNull(run.episodes_per_second)},
          {"parameters", std::move(parameters)},
          {"attempts", std::move(attempts)},
          {"unreachable", run.unreachable},
          {"wants_frames", run.wants_frames},
          {"workers", Printable(absl::StrJoin(run.workers, ", "))}};
}

const char* OnOff(bool on) { return on ? "on" : "off"; }

// The words of an action in the log.
struct WordsOf {
  std::string operator()(const EngineCommand& command) const {
    const auto words = [&](const char* what, const auto&... more) {
      return absl::StrCat(what, " ", Printable(command.region), more...);
    };
    if (const auto* to = std::get_if<SwitchService>(&command.action)) {
      return words("switch", " ", Printable(to->service), " ", OnOff(to->on));
    }
    if (const auto* to = std::get_if<PauseEngine>(&command.action)) {
      return words("pause", " ", OnOff(to->on));
    }
    if (const auto* to = std::get_if<SetMode>(&command.action)) {
      return words("mode", " ", Printable(to->mode), " ", to->factor);
    }
    return words("step");
  }
  std::string operator()(const RecordRun& record) const {
    return absl::StrCat("record ", Printable(record.run), " ",
                        OnOff(record.on));
  }
  std::string operator()(const SubmitRun&) const { return "submit"; }
  std::string operator()(const CancelRun& cancel) const {
    return absl::StrCat("cancel ", Printable(cancel.run_id));
  }
  std::string operator()(const PauseRun& pause) const {
    return absl::StrCat("hold ", Printable(pause.run_id), " ", OnOff(pause.on));
  }
  std::string operator()(const UnknownAction& unknown) const {
    return Printable(unknown.what);
  }
};

void LogAction(const PageAction& action, const absl::Status& status) {
  std::fprintf(
      stderr, "tandem-view: %s %s: %s\n",
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::Now(), absl::LocalTimeZone())
          .c_str(),
      std::visit(WordsOf(), action).c_str(),
      // A daemon's or an engine's text may have line feeds and escapes.
      status.ok() ? "done" : Printable(status.message()).c_str());
}

}  // namespace

PageModel::PageModel(const Options& options)
    : options_(options),
      daemon_(
          options.daemon_target.empty()
              ? nullptr
              : std::make_unique<AsyncDaemonClient>(options.daemon_target)) {}

PageModel::~PageModel() {
  for (const auto& [run, recorded] : recorded_scenes_) {
    LogAction(RecordRun{.run = run}, recorded.Saving(run)().status());
  }
  for (const auto& [run, feed] : recorded_) {
    if (feed->recorder() != nullptr) ends_.Add(feed->TakeRecorder());
  }
}

void PageModel::Poll(int64_t now_ns) {
  for (auto at = feeds_.begin(); at != feeds_.end();) {
    if (const std::shared_ptr<RunFeed> feed = at->second.lock()) {
      feed->ShareTapeWith(feeds_.size());
      feed->Poll(now_ns);
      ++at;
    } else {
      at = feeds_.erase(at);
    }
  }
  EndRecordingsOfEndedScenes();
  EndBrokenRecordings();
  if (scanned_ns_.has_value() && now_ns - *scanned_ns_ < kScanNs) return;
  scanned_ns_ = now_ns;
  nlohmann::json runs = nlohmann::json::array();
  for (const RunEntry& run : run_list_.Scan(now_ns)) {
    runs.push_back(RunJson(run));
  }
  std::string json = TextOfJson(runs);
  if (json != runs_json_) {
    runs_json_ = std::move(json);
    ++runs_version_;
  }
}

std::shared_ptr<RunFeed> PageModel::Feed(const std::string& run) {
  if (const auto found = feeds_.find(run); found != feeds_.end()) {
    if (std::shared_ptr<RunFeed> feed = found->second.lock()) return feed;
  }
  std::erase_if(feeds_, [](const auto& item) { return item.second.expired(); });
  if (feeds_.size() >= kMostFeeds) return nullptr;
  auto feed = std::make_shared<RunFeed>(run);
  feeds_[run] = feed;
  return feed;
}

std::shared_ptr<const std::string> PageModel::Glb(int64_t model) const {
  for (const auto& [run, feed_of_run] : feeds_) {
    const std::shared_ptr<RunFeed> feed = feed_of_run.lock();
    const std::shared_ptr<SceneWatch> scene =
        feed == nullptr ? nullptr : feed->scene();
    if (scene != nullptr && scene->model() == model) return scene->glb();
  }
  return nullptr;
}

std::string PageModel::Report(const std::string& region, int64_t now_ns,
                              int64_t not_before_ns) {
  const std::shared_ptr<const std::string> report =
      engines_.Report(region, now_ns, not_before_ns);
  return report == nullptr ? "" : *report;
}

std::shared_ptr<const PageModel::DaemonTexts> PageModel::DaemonReport(
    int64_t now_ns, int64_t not_before_ns) {
  if (daemon_ == nullptr) return nullptr;
  const std::shared_ptr<const AsyncDaemonClient::List> list =
      daemon_->Runs(now_ns, not_before_ns);
  if (list == nullptr) return nullptr;
  if (list == daemon_list_) return daemon_texts_;
  auto texts = std::make_shared<DaemonTexts>();
  texts->head = TextOfJson({{"target", Printable(daemon_->target())},
                            {"problem", PrintableLines(list->problem)}});
  for (size_t i = 0; i < list->runs.size(); ++i) {
    const DaemonRun& run = list->runs[i];
    // Of ten thousand runs most have not changed.
    if (daemon_list_ != nullptr && i < daemon_list_->runs.size() &&
        daemon_list_->runs[i] == run) {
      texts->runs.push_back(daemon_texts_->runs[i]);
    } else {
      texts->runs.emplace_back(Printable(run.run_id),
                               TextOfJson(DaemonRunJson(run)));
    }
  }
  daemon_list_ = list;
  daemon_texts_ = std::move(texts);
  return daemon_texts_;
}

namespace {

std::shared_ptr<Pending> Refused(const absl::Status& status) {
  auto pending = std::make_shared<Pending>();
  pending->Set(status);
  return pending;
}

absl::Status NoDaemon() {
  return MakeError(ErrorCode::kNotReady,
                   "expected a daemon, found none; start tandem-view with "
                   "--daemon_target");
}

}  // namespace

std::shared_ptr<Pending> PageModel::Curves(const std::string& run_id,
                                           std::vector<uint32_t> which,
                                           size_t points, bool names) {
  if (daemon_ == nullptr) return Refused(NoDaemon());
  const DaemonRun* const run = daemon_->Find(run_id);
  if (run == nullptr) {
    return Refused(MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected a run of the daemon, found ", Quoted(run_id))));
  }
  // A run that was not started has no attempt.
  const RunAttempt attempt =
      run->attempts.empty() ? RunAttempt() : run->attempts.back();
  return daemon_->Ask(
      [cache = curves_, run_id, attempt, which = std::move(which), points,
       names](const DaemonClient& client) -> absl::StatusOr<std::string> {
        RunCurves& curves = cache->Of(run_id, attempt);
        TANDEM_ASSIGN_OR_RETURN(const bool is_complete,
                                client.ReadCurves(run_id, names, &curves));
        nlohmann::json answer = {{"complete", is_complete},
                                 {"names", nlohmann::json::array()},
                                 {"curves", nlohmann::json::array()}};
        if (names) {
          for (const Curve& curve : curves.curves()) {
            answer["names"].push_back(Printable(curve.name()));
          }
        }
        for (const uint32_t place : which) {
          if (place >= curves.curves().size()) continue;
          const Curve& curve = curves.curves()[place];
          nlohmann::json rows = nlohmann::json::array();
          for (const Curve::Bucket& bucket : curve.Points(points)) {
            rows.push_back({bucket.last.step, NumberOrNull(bucket.last.episode),
                            NumberOrNull(bucket.last.time_secs),
                            SixDigits(bucket.mean()), SixDigits(bucket.min),
                            SixDigits(bucket.max)});
          }
          answer["curves"].push_back({{"place", place},
                                      {"not_finite", curve.not_finite()},
                                      {"points", std::move(rows)}});
        }
        return TextOfJson(answer);
      });
}

std::shared_ptr<Pending> PageModel::Log(const std::string& run_id,
                                        const std::string& which,
                                        std::optional<uint64_t> end) {
  if (daemon_ == nullptr) return Refused(NoDaemon());
  const std::optional<LogKind> kind = LogKindOf(which);
  const DaemonRun* const run = daemon_->Find(run_id);
  if (!kind.has_value() || run == nullptr) {
    return Refused(MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected a run of the daemon and stderr, stdout, "
                     "proxy or config, found ",
                     Quoted(run_id), " and ", Quoted(which))));
  }
  return daemon_->Ask([folder = run->folder, kind = *kind, end](
                          const DaemonClient&) -> absl::StatusOr<std::string> {
    TANDEM_ASSIGN_OR_RETURN(const LogTail tail, ReadLogTail(folder, kind, end));
    return TextOfJson({{"size", tail.size},
                       {"begin", tail.begin},
                       {"end", tail.end},
                       {"text", tail.text}});
  });
}

std::shared_ptr<Pending> PageModel::Act(const PageAction& action) {
  if (!options_.control) {
    return Refused(MakeError(
        ErrorCode::kAccessDenied,
        "expected a server with --control, found one that only shows runs; "
        "start tandem-view with --control"));
  }
  const auto log = [action](const absl::Status& status) {
    LogAction(action, status);
  };
  const auto refuse = [&](const absl::Status& why) {
    log(why);
    return Refused(why);
  };
  const auto ask_daemon = [&](const DaemonAction& of_daemon) {
    return daemon_ == nullptr ? refuse(NoDaemon())
                              : daemon_->Act(of_daemon, log);
  };
  return std::visit(
      [&]<typename Kind>(const Kind& kind) -> std::shared_ptr<Pending> {
        if constexpr (std::is_same_v<Kind, EngineCommand>) {
          return engines_.Act(kind.region, kind.action, log);
        } else if constexpr (std::is_same_v<Kind, RecordRun>) {
          return Record(kind);
        } else if constexpr (std::is_same_v<Kind, UnknownAction>) {
          return refuse(
              MakeError(ErrorCode::kInvalidArgument,
                        absl::StrCat("expected an action of the page, found ",
                                     Quoted(kind.what))));
        } else {
          return ask_daemon(kind);
        }
      },
      action);
}

std::shared_ptr<Pending> PageModel::Record(const RecordRun& action) {
  const auto found = feeds_.find(action.run);
  const std::shared_ptr<RunFeed> feed =
      found == feeds_.end() ? nullptr : found->second.lock();
  const bool is_recorded = feed != nullptr && (feed->recorder() != nullptr ||
                                               RecordsScene(action.run));
  if (feed == nullptr || (!action.on && !is_recorded)) {
    const absl::Status refused = MakeError(
        ErrorCode::kNotReady, absl::StrCat("expected a run that is ",
                                           action.on ? "opened" : "recorded",
                                           ", found ", Quoted(action.run)));
    LogAction(action, refused);
    return Refused(refused);
  }
  if (action.on && RecordsScene(action.run)) {
    const absl::Status refused =
        MakeError(ErrorCode::kInvalidArgument,
                  absl::StrCat("expected a run that is not recorded yet, found "
                               "the recording ",
                               recorded_scenes_.at(action.run).path, ".html"));
    LogAction(action, refused);
    return Refused(refused);
  }
  if (!action.on) {
    recorded_.erase(action.run);
    std::shared_ptr<Pending> video;
    if (feed->recorder() != nullptr) {
      video = ends_.Add(
          feed->TakeRecorder(),
          [action](const absl::Status& saved) { LogAction(action, saved); });
    }
    return RecordsScene(action.run) ? EndSceneRecording(action) : video;
  }
  const std::shared_ptr<SceneWatch> scene = feed->scene();
  const bool has_scene = scene != nullptr && scene->newest() != nullptr &&
                         scene->state() == SceneWatch::State::kLive;
  const std::string path =
      absl::StrCat(options_.recordings, "/", NewFileName(action.run, ""));
  const absl::Status started = feed->StartRecording(absl::StrCat(path, ".mp4"));
  LogAction(action, has_scene ? absl::OkStatus() : started);
  if (!started.ok() && !has_scene) return Refused(started);
  if (started.ok()) recorded_[action.run] = feed;
  if (has_scene) {
    const std::shared_ptr<std::vector<uint32_t>> envs = scene->Join();
    const PoseSnapshot& newest = scene->newest()->snapshot;
    for (uint32_t i = 0; i < newest.rows(); ++i) {
      envs->push_back(newest.row(i).env);
    }
    recorded_scenes_[action.run] = {.feed = feed,
                                    .scene = scene,
                                    .envs = envs,
                                    .since_ns = scene->newest()->at_ns,
                                    .path = path};
  }
  auto pending = std::make_shared<Pending>();
  pending->Set(absl::StrCat("Recording ", path, has_scene ? ".html" : ".mp4"));
  return pending;
}

std::shared_ptr<Pending> PageModel::EndSceneRecording(const RecordRun& action) {
  const auto ended = recorded_scenes_.extract(action.run);
  return StartAction(
      &scene_thread_, ended.mapped().Saving(action.run),
      [action](const absl::Status& saved) { LogAction(action, saved); });
}

std::function<absl::StatusOr<std::string>()> PageModel::RecordedScene::Saving(
    const std::string& run) const {
  return [recording = SceneRecording::Of(*scene, run, since_ns),
          path = path]() -> absl::StatusOr<std::string> {
    TANDEM_RETURN_IF_ERROR(SaveScene(recording, absl::StrCat(path, ".html")));
    TANDEM_RETURN_IF_ERROR(SaveScene(recording, absl::StrCat(path, ".glb")));
    return absl::StrCat("Saved ", path, ".html and .glb");
  };
}

void PageModel::EndRecordingsOfEndedScenes() {
  std::vector<std::string> ended;
  for (const auto& [run, recorded] : recorded_scenes_) {
    if (recorded.scene->state() == SceneWatch::State::kLive) continue;
    recorded.feed->SetError(absl::StrCat(
        "The recording has ended with its scene: ", recorded.path, ".html"));
    ended.push_back(run);
  }
  for (const std::string& run : ended) {
    (void)Record(RecordRun{.run = run, .on = false});
  }
}

void PageModel::EndBrokenRecordings() {
  std::erase_if(recorded_, [this](const auto& item) {
    const Mp4Recorder* const recorder = item.second->recorder();
    if (recorder != nullptr && recorder->status().ok()) return false;
    if (recorder == nullptr) return true;
    item.second->SetError(std::string(recorder->status().message()));
    LogAction(RecordRun{.run = item.first}, recorder->status());
    ends_.Add(item.second->TakeRecorder());
    return true;
  });
}

}  // namespace tandem
