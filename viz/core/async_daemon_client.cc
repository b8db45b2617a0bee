#include "viz/core/async_daemon_client.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "viz/core/eval_summary.h"
#include "viz/core/run_links.h"

namespace tandem {

std::shared_ptr<const AsyncDaemonClient::List> AsyncDaemonClient::Runs(
    int64_t now_ns, int64_t not_before_ns) {
  std::shared_ptr<const List> list = list_->Newest(
      &list_thread_, now_ns, not_before_ns, [this] { return Read(); });
  if (list != nullptr) newest_ = list;
  return list;
}

const DaemonRun* AsyncDaemonClient::Find(const std::string& run_id) const {
  if (newest_ == nullptr) return nullptr;
  const auto found = absl::c_find_if(newest_->runs, [&](const DaemonRun& run) {
    return run.run_id == run_id;
  });
  return found == newest_->runs.end() ? nullptr : &*found;
}

std::shared_ptr<Pending> AsyncDaemonClient::Ask(
    std::function<absl::StatusOr<std::string>(const DaemonClient& client)>
        ask) {
  return StartAction(&ask_thread_,
                     [this, ask = std::move(ask)] { return ask(client_); }, {});
}

AsyncDaemonClient::List AsyncDaemonClient::Read() {
  absl::StatusOr<DaemonRuns> runs = client_.ListRuns();
  if (!runs.ok()) {
    // What a user has opened of a run stays: the daemon may come back.
    for (DaemonRun& run : last_runs_) run.unreachable = !run.has_ended;
    return {.problem = std::string(runs.status().message()),
            .runs = last_runs_};
  }
  for (DaemonRun& run : runs->runs) {
    const auto [at, is_new] = folders_.try_emplace(run.run_id);
    Folder& folder = at->second;
    if (is_new) folder.wants_frames = WantsFrames(run.folder);
    if (!folder.has_ended) {
      // While it is written, the text before it remains.
      if (auto found = ReadEvalSummary(
              absl::StrCat(run.folder, "/", kEvalSummaryFile))) {
        folder.evaluation = EvalSummaryText(*found);
      }
      folder.has_ended = run.has_ended;
    }
    run.wants_frames = folder.wants_frames;
    run.evaluation = folder.evaluation;
  }
  // The daemon forgets runs; those that stay are read again.
  if (folders_.size() > 2 * runs->runs.size() + 100) folders_.clear();
  last_runs_ = runs->runs;
  return {.problem = runs->state == "ok" ? "" : runs->state,
          .runs = std::move(runs->runs)};
}

std::shared_ptr<Pending> AsyncDaemonClient::Act(
    const DaemonAction& action,
    std::function<void(const absl::Status& status)> done) {
  return StartAction(
      &action_thread_, [this, action] { return Perform(action); },
      std::move(done));
}

absl::StatusOr<std::string> AsyncDaemonClient::Perform(
    const DaemonAction& action) const {
  if (const auto* submit = std::get_if<SubmitRun>(&action)) {
    TANDEM_ASSIGN_OR_RETURN(const std::string run_id,
                            client_.Submit(submit->config));
    return absl::StrCat("Submitted ", run_id);
  }
  if (const auto* cancel = std::get_if<CancelRun>(&action)) {
    TANDEM_RETURN_IF_ERROR(client_.Cancel(cancel->run_id));
  } else {
    const auto& pause = std::get<PauseRun>(action);
    TANDEM_RETURN_IF_ERROR(client_.SetPaused(pause.run_id, pause.on));
  }
  return "Done";
}

}  // namespace tandem
