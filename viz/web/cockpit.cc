#include "viz/web/cockpit.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "schema/layout/service.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"
#include "transport/base/quoted.h"
#include "viz/inspect/inspection_output.h"
#include "viz/web/json_text.h"

namespace tandem {
namespace {

constexpr int64_t kReportNs = 1'000'000'000;
constexpr int64_t kForgetNs = 10'000'000'000;

nlohmann::json RunJson(const RunEntry& run) {
  const std::string shown = Printable(run.run);
  return {{"run", shown},
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
          {"return", NumberOrNull(run.rolling_return)},
          {"steps_per_second", NumberOrNull(run.step_rate_hz)}};
}

nlohmann::json DaemonRunJson(const DaemonRun& run) {
  nlohmann::json json = {
      {"run", Printable(run.run_id)},
      {"name", Printable(run.name)},
      {"state", run.state},
      {"ended", run.has_ended},
      {"reason", Printable(run.reason)},
      {"created", run.created_secs},
      {"steps", run.steps},
      {"episodes", run.episodes},
      {"steps_per_second", NumberOrNull(run.steps_per_second)},
      {"unreachable", run.unreachable},
      {"return", nullptr},
      {"max_steps", nullptr}};
  if (run.last_return.has_value()) {
    json["return"] = NumberOrNull(*run.last_return);
  }
  if (run.max_steps.has_value()) json["max_steps"] = *run.max_steps;
  return json;
}

bool IsOnEngine(const Action& action) {
  return action.what == "switch" || action.what == "pause" ||
         action.what == "step" || action.what == "mode";
}

// A name for a file: letters, digits, and few signs.
std::string FileName(absl::string_view run) {
  std::string name(run.substr(0, 100));
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (!absl::ascii_isalnum(byte) && letter != '-' && letter != '.') {
      letter = '_';
    }
  }
  return absl::StrCat(
      name, "-",
      absl::FormatTime("%Y%m%d-%H%M%E3S", absl::Now(), absl::LocalTimeZone()),
      ".mp4");
}

void Log(const Action& action, const absl::Status& status) {
  std::fprintf(
      stderr, "tandem-view: %s %s %s%s%s%s: %s\n",
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::Now(), absl::LocalTimeZone())
          .c_str(),
      Printable(action.what).c_str(), Printable(action.target).c_str(),
      action.service.empty()
          ? ""
          : absl::StrCat(" ", Printable(action.service)).c_str(),
      action.mode.empty() ? ""
                          : absl::StrCat(" ", Printable(action.mode)).c_str(),
      action.what == "switch" || action.what == "pause" ||
              action.what == "hold" || action.what == "record"
          ? (action.on ? " on" : " off")
          : "",
      status.ok() ? "done" : std::string(status.message()).c_str());
}

}  // namespace

Cockpit::Cockpit(const Options& options)
    : options_(options),
      daemon_(options.daemon_target.empty()
                  ? nullptr
                  : std::make_unique<DaemonClient>(options.daemon_target)) {}

void Cockpit::Poll(int64_t now_ns) {
  const size_t tape_bytes =
      std::min(FrameTape::Limits().bytes,
               kTapesBytes / std::max<size_t>(1, feeds_.size()));
  for (auto at = feeds_.begin(); at != feeds_.end();) {
    if (const std::shared_ptr<RunFeed> feed = at->second.lock()) {
      feed->SetMostTapeBytes(tape_bytes);
      feed->Poll(now_ns);
      ++at;
    } else {
      at = feeds_.erase(at);
    }
  }
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
  std::erase_if(reports_, [now_ns](const auto& item) {
    return now_ns - item.second->wanted_ns > kForgetNs;
  });
}

std::shared_ptr<RunFeed> Cockpit::Feed(const std::string& run) {
  if (const auto found = feeds_.find(run); found != feeds_.end()) {
    if (std::shared_ptr<RunFeed> feed = found->second.lock()) return feed;
  }
  std::erase_if(feeds_, [](const auto& item) { return item.second.expired(); });
  if (feeds_.size() >= kMostFeeds) return nullptr;
  auto feed = std::make_shared<RunFeed>(run);
  feeds_[run] = feed;
  return feed;
}

std::shared_ptr<EventFollower> Cockpit::Follower(const std::string& run_id) {
  if (const auto found = followers_.find(run_id); found != followers_.end()) {
    if (std::shared_ptr<EventFollower> follower = found->second.lock()) {
      return follower;
    }
  }
  std::erase_if(followers_,
                [](const auto& item) { return item.second.expired(); });
  if (daemon_ == nullptr || followers_.size() >= kMostFollowers) return nullptr;
  auto follower =
      std::make_shared<EventFollower>(options_.daemon_target, run_id);
  followers_[run_id] = follower;
  return follower;
}

std::string Cockpit::Report(const std::string& region, int64_t now_ns,
                            int64_t not_before_ns) {
  std::shared_ptr<Background>& report = reports_[region];
  if (report == nullptr) report = std::make_shared<Background>();
  report->wanted_ns = now_ns;
  return Newest(report, &engine_reports_, now_ns, not_before_ns,
                [this, region] { return ReadReport(region); });
}

std::string Cockpit::DaemonReport(int64_t now_ns, int64_t not_before_ns) {
  if (daemon_ == nullptr) return "";
  return Newest(daemon_report_, &daemon_reports_, now_ns, not_before_ns,
                [this] { return ReadDaemon(); });
}

std::string Cockpit::Newest(const std::shared_ptr<Background>& report,
                            WorkThread* thread, int64_t now_ns,
                            int64_t not_before_ns,
                            std::function<std::string()> read) {
  absl::MutexLock lock(&report->mutex);
  if (!report->reading &&
      (report->requested_ns == 0 || report->requested_ns < not_before_ns ||
       now_ns - report->requested_ns >= kReportNs)) {
    report->requested_ns = now_ns;
    report->reading = thread->Post([report, now_ns, read = std::move(read)] {
      std::string json = read();
      absl::MutexLock inner(&report->mutex);
      report->json = std::move(json);
      report->json_ns = now_ns;
      report->reading = false;
    });
  }
  return report->json_ns >= not_before_ns ? report->json : "";
}

std::string Cockpit::ReadReport(const std::string& region) {
  return JsonOf(inspector_.InspectName(region));
}

std::string Cockpit::ReadDaemon() const {
  nlohmann::json json = {{"target", Printable(daemon_->target())},
                         {"problem", ""},
                         {"runs", nlohmann::json::array()}};
  const absl::StatusOr<DaemonRuns> runs = daemon_->ListRuns();
  if (!runs.ok()) {
    json["problem"] = PrintableLines(runs.status().message());
    return TextOfJson(json);
  }
  if (runs->state != "ok") json["problem"] = Printable(runs->state);
  for (const DaemonRun& run : runs->runs) {
    json["runs"].push_back(DaemonRunJson(run));
  }
  return TextOfJson(json);
}

std::shared_ptr<Pending> Cockpit::Act(const Action& action) {
  auto pending = std::make_shared<Pending>();
  if (!options_.control) {
    pending->Set(MakeError(
        ErrorCode::kAccessDenied,
        "expected a server with --control, found one that only shows runs; "
        "start tandem-view with --control"));
    return pending;
  }
  if (action.what == "record") {
    Record(action, pending);
    return pending;
  }
  WorkThread& thread = IsOnEngine(action) ? engine_actions_ : daemon_actions_;
  const bool posted = thread.Post([this, action, pending] {
    absl::StatusOr<std::string> result = Perform(action);
    Log(action, result.status());
    pending->Set(std::move(result));
  });
  if (!posted) {
    pending->Set(MakeError(ErrorCode::kNotReady,
                           "expected fewer actions at once, found that 64 "
                           "wait; try again"));
  }
  return pending;
}

void Cockpit::Record(const Action& action, std::shared_ptr<Pending> pending) {
  const auto found = feeds_.find(action.target);
  const std::shared_ptr<RunFeed> feed =
      found == feeds_.end() ? nullptr : found->second.lock();
  if (feed == nullptr || (!action.on && feed->recorder() == nullptr)) {
    pending->Set(MakeError(ErrorCode::kNotReady,
                           absl::StrCat("expected a run that is ",
                                        action.on ? "opened" : "recorded",
                                        ", found ", Quoted(action.target))));
    return;
  }
  if (action.on) {
    const std::string path =
        absl::StrCat(options_.recordings, "/", FileName(action.target));
    const absl::Status started = feed->StartRecording(path);
    if (started.ok()) recorded_[action.target] = feed;
    Log(action, started);
    pending->Set(started.ok() ? absl::StatusOr<std::string>(
                                    absl::StrCat("Recording ", path))
                              : started);
    return;
  }
  recorded_.erase(action.target);
  // Finish blocks. std::function must be copyable.
  const std::shared_ptr<Mp4Recorder> recorder = feed->TakeRecorder();
  const auto finish = [action, recorder, pending] {
    const absl::Status saved = recorder->Finish();
    Log(action, saved);
    pending->Set(saved.ok() ? absl::StatusOr<std::string>(
                                  absl::StrCat("Saved ", recorder->path()))
                            : saved);
  };
  if (!engine_actions_.Post(finish)) finish();
}

void Cockpit::EndBrokenRecordings() {
  std::erase_if(recorded_, [this](const auto& item) {
    const Mp4Recorder* const recorder = item.second->recorder();
    if (recorder != nullptr && recorder->status().ok()) return false;
    if (recorder == nullptr) return true;
    item.second->SetError(std::string(recorder->status().message()));
    Log({.what = "record", .target = item.first}, recorder->status());
    const std::shared_ptr<Mp4Recorder> ended = item.second->TakeRecorder();
    engine_actions_.Post([ended] { (void)ended->Finish(); });
    return true;
  });
}

absl::StatusOr<std::string> Cockpit::Perform(const Action& action) {
  const auto done = [](const absl::Status& status) {
    return status.ok() ? absl::StatusOr<std::string>("Done") : status;
  };
  if (IsOnEngine(action)) {
    return done(PerformOnEngine(action));
  }
  if (daemon_ == nullptr) {
    return MakeError(ErrorCode::kNotReady,
                     "expected a daemon, found none; start tandem-view with "
                     "--daemon_target");
  }
  if (action.what == "submit") {
    TANDEM_ASSIGN_OR_RETURN(const std::string run_id,
                            daemon_->Submit(action.text));
    return absl::StrCat("Submitted ", run_id);
  }
  if (action.what == "cancel") return done(daemon_->Cancel(action.target));
  if (action.what == "hold") {
    return done(daemon_->SetPaused(action.target, action.on));
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("expected an action of the page, found ",
                                Quoted(action.what)));
}

absl::Status Cockpit::PerformOnEngine(const Action& action) {
  if (action.what == "switch" &&
      !absl::c_linear_search(kServiceNames, action.service)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a service's name, found ",
                                  Quoted(action.service)));
  }
  // An engine that this program has paused keeps its slot, since the end of the
  // attendant ends the pause. Other slots are left at once.
  if (const auto held = paused_.find(action.target);
      held != paused_.end() && !held->second.EngineAlive()) {
    paused_.erase(held);
  }
  auto held = paused_.find(action.target);
  if (held == paused_.end()) {
    TANDEM_ASSIGN_OR_RETURN(
        EngineControl control,
        EngineControl::Attach(action.target, "tandem-view"));
    held = paused_.emplace(action.target, std::move(control)).first;
  }
  EngineControl& control = held->second;
  absl::Status status;
  if (action.what == "switch") {
    status = control.SwitchService(action.service, action.on);
  } else if (action.what == "pause") {
    status = control.SetPaused(action.on);
  } else if (action.what == "step") {
    status = control.SingleStep();
  } else {
    status = control.SetMode(action.mode);
  }
  const absl::StatusOr<EngineControl::Mode> mode = control.ReadMode();
  if (!mode.ok() || !mode->paused) paused_.erase(held);
  return status;
}

}  // namespace tandem
