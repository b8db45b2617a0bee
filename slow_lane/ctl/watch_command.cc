#include "slow_lane/ctl/watch_command.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "program/screen.h"
#include "program/standard_output.h"
#include "slow_lane/ctl/runs_text.h"
#include "slow_lane/ctl/text_table.h"
#include "slow_lane/runs/run_state.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {
namespace {

constexpr uint64_t kEpisodesShown = 10;
// A daemon that is stopped must not keep Ctrl-C waiting for long.
constexpr absl::Duration kLookDeadline = absl::Seconds(2);

sigset_t WatchSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) {
    sigaddset(&signals, number);
  }
  return signals;
}

struct Look {
  std::vector<v1::RunDescription> runs;               // those that go on first
  std::vector<gymgui::trainer::RunEpisode> episodes;  // of one run
  std::string daemon_state = "ok";
};

absl::StatusOr<Look> LookAt(Connection* daemon, const std::string& run_id) {
  const auto described = run_id.empty()
                             ? daemon->DescribeRuns({}, kLookDeadline)
                             : daemon->DescribeRun(run_id, kLookDeadline);
  if (!described.ok()) return described.status();
  Look look;
  look.daemon_state = described->daemon_state();
  look.runs.assign(described->runs().begin(), described->runs().end());
  // The newest first: they matter most, and a window may be too small for all.
  std::reverse(look.runs.begin(), look.runs.end());
  std::stable_partition(look.runs.begin(), look.runs.end(), [](const auto& r) {
    return !IsFinal(r.record().status());
  });
  if (!run_id.empty() && look.runs.front().episodes() > 0) {
    auto episodes = daemon->LastEpisodes(run_id, look.runs.front().episodes(),
                                         kEpisodesShown, kLookDeadline);
    if (!episodes.ok()) return episodes.status();
    look.episodes = *std::move(episodes);
  }
  return look;
}

std::string ClockText(absl::Time time) {
  return absl::FormatTime("%H:%M:%S", time, absl::LocalTimeZone());
}

// For a terminal.
std::string PageOf(const Look& look, bool one, const std::string& daemon,
                   const std::string& waiting, absl::Time now) {
  std::string page = absl::StrCat(ClockText(now), "  ", daemon);
  if (!one) absl::StrAppend(&page, "  ", RunsSummary(look.runs));
  if (!waiting.empty()) absl::StrAppend(&page, "\n", waiting);
  if (look.daemon_state != "ok") {
    absl::StrAppend(
        &page, "\nthe daemon is not well: ", OneLine(look.daemon_state, 4096));
  }
  absl::StrAppend(&page, "\n\n");
  if (one) {
    return look.runs.empty()  // it was submitted, and not looked at since
               ? page
               : absl::StrCat(page,
                              RunPage(look.runs.front(), look.episodes, now));
  }
  return look.runs.empty()
             ? absl::StrCat(page,
                            "no runs; tandemctl submit -- PROGRAM starts "
                            "one\n")
             : absl::StrCat(page, RunsTable(look.runs, now));
}

// For a log: those that go on, and those that went on at the last look.
std::string LinesOf(const Look& look, bool one, std::set<std::string>* going_on,
                    absl::Time now) {
  std::string lines;
  const std::set<std::string> before = std::exchange(*going_on, {});
  for (const v1::RunDescription& run : look.runs) {
    const std::string& run_id = run.record().run_id();
    if (!IsFinal(run.record().status())) {
      going_on->insert(run_id);
    } else if (!one && !before.contains(run_id)) {
      continue;
    }
    absl::StrAppend(&lines, ClockText(now), " ", RunLine(run, now));
  }
  if (look.daemon_state != "ok") {
    absl::StrAppend(&lines, ClockText(now), " the daemon is not well: ",
                    OneLine(look.daemon_state, 4096), "\n");
  }
  return lines.empty() ? absl::StrCat(ClockText(now), " no run goes on\n")
                       : lines;
}

enum class Woken { kNextLook, kEnd };

// A second, or a signal.
Woken WaitForNextLook(Screen* screen) {
  constexpr timespec kSecond = {.tv_sec = 1, .tv_nsec = 0};
  const sigset_t signals = WatchSignals();
  switch (sigtimedwait(&signals, nullptr, &kSecond)) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
      return Woken::kEnd;
    case SIGTSTP:
      screen->Leave();
      raise(SIGSTOP);
      return Woken::kNextLook;
    default:  // the second is over, or the window has another size
      return Woken::kNextLook;
  }
}

bool MayComeBack(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// `last`: the run as it was seen last; nothing: never.
absl::Status Forgotten(const std::string& run_id, const std::string& daemon,
                       const std::vector<v1::RunDescription>& last) {
  const std::string seen =
      last.empty() ? "it was never seen"
                   : absl::StrCat("it was seen last when it was ",
                                  NameOf(last.front().record().status()));
  return absl::NotFoundError(absl::StrCat(
      "expected to see how run ", run_id, " ends, found that the daemon at ",
      daemon,
      " has forgotten it (--keep_runs, or tandemctl delete): its outcome "
      "is not known; ",
      seen, "\nNext: start the daemon with a greater --keep_runs, or without"));
}

bool NobodyReads(const absl::Status& status) {
  return CodeOf(status) == ErrorCode::kPeerGone;
}

}  // namespace

void BlockWatchSignals() {
  const sigset_t signals = WatchSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

ExitCode RunWatch(Connection* daemon, const WatchCommand& command) {
  const bool one = !command.run_id.empty();
  Screen screen;
  Look last;
  std::set<std::string> going_on;
  std::string waiting;
  bool met = command.submitted;
  do {
    absl::StatusOr<Look> look = LookAt(daemon, command.run_id);
    const absl::Time now = absl::Now();
    if (look.ok()) {
      met = true;
      waiting.clear();
      last = *std::move(look);
    } else if (met && MayComeBack(look.status())) {
      waiting = absl::StrCat("waiting for the daemon at ", daemon->address());
    } else {
      screen.Leave();
      return Fail(one && met && absl::IsNotFound(look.status())
                      ? Forgotten(command.run_id, daemon->address(), last.runs)
                      : look.status());
    }
    const bool ended =
        one && waiting.empty() && IsFinal(last.runs.front().record().status());
    if (ended) screen.Leave();
    std::string text;
    if (!screen.replaces()) {
      text = waiting.empty() ? LinesOf(last, one, &going_on, now)
                             : absl::StrCat(ClockText(now), " ", waiting, "\n");
    } else {
      text = PageOf(last, one, daemon->address(), waiting, now);
    }
    if (ended) {
      // It stays, below what was there before the watch.
      if (const absl::Status s = Print(text); !s.ok() && !NobodyReads(s)) {
        return Fail(s);
      }
      return last.runs.front().record().status() ==
                     gymgui::trainer::RUN_STATUS_FAULT
                 ? kNotWell
                 : kDone;
    }
    if (const absl::Status s = screen.Show(text); !s.ok()) {
      screen.Leave();
      return NobodyReads(s) ? kDone : Fail(s);
    }
  } while (WaitForNextLook(&screen) == Woken::kNextLook);
  return kDone;
}

}  // namespace tandem::slow_lane
