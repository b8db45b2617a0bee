#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "schema/layout/phase_word.h"
#include "transport/report.h"

namespace tandem {
namespace {

// Longer than a step that users call fast.
constexpr double kLongSecs = 1;

void JudgePeers(const RegionReport& report, RegionVerdict* verdict) {
  const PeerReport& engine = report.engine;
  const PeerReport& client = report.client;
  if (engine.life == Life::kDead) {
    verdict->problems.push_back(
        absl::StrCat("the engine (pid ", engine.pid,
                     ") died: killed, or crashed; start it again, which "
                     "removes this region"));
  } else if (engine.life == Life::kUnknown) {
    verdict->remarks.push_back(
        "whether an engine lives is unknown: this region's engine keeps no "
        "lock");
  }
  if (client.life == Life::kDead) {
    verdict->problems.push_back(absl::StrCat(
        "the client (pid ", client.pid, ") died",
        engine.life == Life::kAlive
            ? "; the engine frees the client slot within 10 ms, unless the "
              "engine is stopped itself"
            : ""));
  }
  if (engine.life != Life::kAlive) return;
  const bool works = IsWork(engine.phase);
  if (works && engine.phase_secs > kLongSecs) {
    verdict->remarks.push_back(absl::StrFormat(
        "the engine is %s for %.1f s: this is slow, or it is stopped (SIGSTOP, "
        "a debugger)",
        NameOf(engine.phase), engine.phase_secs));
  }
  if (!works && report.to_engine.used_bytes > 0 &&
      engine.phase_secs > kLongSecs) {
    verdict->remarks.push_back(absl::StrFormat(
        "messages to the engine have not been read, though it is %s for %.1f "
        "s: it is stopped (SIGSTOP, a debugger), or no core is free",
        NameOf(engine.phase), engine.phase_secs));
    return;
  }
  if (engine.phase == Phase::kPaused ||
      engine.phase == Phase::kPausedByAttendant) {
    verdict->remarks.push_back(absl::StrFormat(
        "the engine is %s for %.1f s: an RPC paused it, and another can "
        "resume it",
        NameOf(engine.phase), engine.phase_secs));
    return;
  }
  // JudgeWorkers names the workers that an exchange waits for.
  const bool asked =
      (report.exchange == ExchangeState::kPending && report.workers.empty()) ||
      client.phase == Phase::kAttaching;
  if (asked && !works && engine.phase_secs > kLongSecs &&
      client.phase_secs > kLongSecs) {
    verdict->remarks.push_back(absl::StrFormat(
        "the client is %s for %.1f s, and the engine does not respond: it is "
        "stopped (SIGSTOP, a debugger), or no core is free",
        NameOf(client.phase), client.phase_secs));
  }
}

// For a region with workers: those that died, and the one that the client waits
// for.
void JudgeWorkers(const RegionReport& report, RegionVerdict* verdict) {
  if (report.engine.life != Life::kAlive) return;
  const WorkerReport* slowest = nullptr;
  size_t done = 0;
  for (size_t i = 0; i < report.workers.size(); ++i) {
    const WorkerReport& worker = report.workers[i];
    if (worker.life == Life::kDead) {
      verdict->remarks.push_back(
          absl::StrCat("worker ", i, " (pid ", worker.pid,
                       ") died; its engine starts it again, or ends"));
    }
    if (worker.done) {
      ++done;
    } else if (slowest == nullptr || worker.phase_secs > slowest->phase_secs) {
      slowest = &worker;
    }
  }
  if (report.exchange != ExchangeState::kPending || slowest == nullptr ||
      slowest->phase_secs <= kLongSecs) {
    return;
  }
  const bool works = IsWork(slowest->phase);
  // A worker that is idle may have been so before the exchange. The supervisor
  // holds workers in a pause.
  if (!works && (report.client.phase_secs <= kLongSecs ||
                 report.engine.phase == Phase::kPaused ||
                 report.engine.phase == Phase::kPausedByAttendant)) {
    return;
  }
  const std::string where =
      works ? absl::StrCat(", in environment ", slowest->env)
            : ": it is stopped (SIGSTOP, a debugger), or no core is free";
  verdict->remarks.push_back(absl::StrFormat(
      "%d of %d workers are done; the client waits for worker %d (pid %d), "
      "which is %s for %.1f s%s",
      done, report.workers.size(), slowest - report.workers.data(),
      slowest->pid, NameOf(slowest->phase), slowest->phase_secs, where));
}

void JudgeRing(const RingFill& ring, absl::string_view reader,
               RegionVerdict* verdict) {
  if (!ring.problem.empty()) {
    verdict->problems.push_back(
        absl::StrCat("the ring to ", reader, ": ", ring.problem));
  } else if (uint64_t{ring.used_bytes} * 4 > uint64_t{ring.capacity} * 3) {
    verdict->remarks.push_back(absl::StrFormat(
        "the ring to %s is %.0f %% full: %s does not read it", reader,
        100.0 * ring.used_bytes / ring.capacity, reader));
  }
}

}  // namespace

RegionVerdict JudgeRegion(const RegionReport& report) {
  RegionVerdict verdict;
  for (const std::string& problem : report.header_problems) {
    verdict.problems.push_back(absl::StrCat("corrupt header: ", problem));
  }
  if (!report.has_header) return verdict;
  JudgePeers(report, &verdict);
  JudgeWorkers(report, &verdict);
  if (report.exchange == ExchangeState::kImpossible) {
    verdict.problems.push_back(
        absl::StrCat("expected action_seq to be frame_seq or one more, found ",
                     report.action_seq, " and ", report.frame_seq,
                     ": another process writes them"));
  }
  JudgeRing(report.to_client, "the client", &verdict);
  JudgeRing(report.to_engine, "the engine", &verdict);
  if (report.frames && !report.frames->problem.empty()) {
    verdict.problems.push_back(report.frames->problem);
  }
  if (report.status != ErrorCode::kOk) {
    verdict.remarks.push_back(
        absl::StrCat("the last exchange failed: ", NameOf(report.status), ", ",
                     report.error_text.empty() ? MeaningOf(report.status)
                                               : report.error_text));
  }
  if (report.name_gone && report.engine.life == Life::kAlive) {
    verdict.remarks.push_back("its name was removed; the engine restores it");
  }
  return verdict;
}

}  // namespace tandem
