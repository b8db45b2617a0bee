#include "slow_lane/daemon/watch_hub.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "slow_lane/store/event_columns.h"

namespace tandem::slow_lane {
namespace {

constexpr uint64_t kUnwanted = std::numeric_limits<uint64_t>::max();
constexpr size_t kRowsOfBlock = 1'000;
// A block of this size takes no rows of another stream: with a large event of
// each stream it would exceed a message (kMaxEventBytes).
constexpr size_t kFullBlockBytes = size_t{4} << 20;
constexpr size_t kUpdatesOfBlock = 256;

// Whether an event costs a credit of its watcher's ControlStream.
constexpr bool CostsCredits(Stream stream) {
  return stream == Stream::kSteps || stream == Stream::kScalars;
}

uint64_t LastNumber(const v1::EventBatch& block, Stream stream) {
  return VisitEvents(stream, block, [](const auto& events) {
    return uint64_t{events.rbegin()->seq_id()};
  });
}

absl::Status Stopping() {
  return absl::UnavailableError(
      "the daemon is stopping; nothing is lost: ask the next one with "
      "since_seq");
}

}  // namespace

WatchHub::WatchHub(std::unique_ptr<EventReader> reader)
    : reader_(std::move(reader)), loop_("watchers") {}

void WatchHub::Committed(const std::string& run_id, const Numbers& last) {
  loop_.Post([this, run_id, last] {
    const auto run = runs_.find(run_id);
    if (run == runs_.end()) return;
    run->second.last.RaiseTo(last);
    AdvanceRun(run_id);
  });
}

void WatchHub::RunEnded(const std::string& run_id) {
  loop_.Post([this, run_id] {
    const auto run = runs_.find(run_id);
    if (run == runs_.end()) return;
    run->second.ended = true;
    AdvanceRun(run_id);
  });
}

void WatchHub::Updated(uint64_t update_seq) {
  loop_.Post([this, update_seq] {
    std::vector<Id> behind;
    for (const auto& [id, watcher] : updates_) {
      if (watcher.since < update_seq) behind.push_back(id);
    }
    for (const Id id : behind) AdvanceUpdates(id);
  });
}

void WatchHub::Add(Id id, Watch watch, bool run_ended, EventSink* sink) {
  loop_.Post([this, id, watch = std::move(watch), run_ended, sink]() mutable {
    if (ended_) return sink->End(Stopping());
    const std::string run_id = watch.run_id;
    Run& run = runs_[run_id];
    ++run.watchers;
    ++watchers_;
    run.ended |= run_ended;
    Watcher& watcher = events_[id];
    watcher.watch = std::move(watch);
    watcher.sink = sink;
    // Rows that were committed before the watch. Later commits are posted after
    // this task.
    const absl::StatusOr<RunProgress> progress = reader_->Progress(run_id);
    if (!progress.ok()) return End(id, progress.status());
    run.last.RaiseTo(progress->last);
    if (!watcher.watch.follow) watcher.until = run.last;
    Advance(id);
  });
}

void WatchHub::AddUpdates(Id id, uint64_t since, UpdateSink* sink) {
  loop_.Post([this, id, since, sink] {
    if (ended_) return sink->End(Stopping());
    ++watchers_;
    updates_[id] = {.since = since, .sink = sink, .from_start = since == 0};
    AdvanceUpdates(id);
  });
}

void WatchHub::Sent(Id id) {
  loop_.Post([this, id] {
    if (const auto found = events_.find(id); found != events_.end()) {
      found->second.sending = false;
      Advance(id);
    } else if (const auto update = updates_.find(id);
               update != updates_.end()) {
      update->second.sending = false;
      AdvanceUpdates(id);
    }
  });
}

void WatchHub::Remove(Id id) {
  loop_.Post([this, id] { End(id, absl::CancelledError("the call ended")); });
}

void WatchHub::Grant(const std::string& key, const std::string& run_id,
                     uint32_t credits, ControlSink* sink) {
  loop_.Post([this, key, run_id, credits, sink] {
    Control& control = controls_[{key, run_id}];
    control.sink = sink;
    control.credits = static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{control.credits} + credits,
                           std::numeric_limits<uint32_t>::max()));
    if (control.starved && control.credits > kStarvedCredits) {
      control.starved = false;
      gymgui::trainer::ControlEvent resumed;
      resumed.set_run_id(run_id);
      resumed.set_resume(true);
      control.sink->Send(resumed);
    }
    AdvanceRun(run_id);
  });
}

void WatchHub::LimitRate(const std::string& key, const std::string& run_id,
                         uint32_t hz, ControlSink* sink) {
  loop_.Post([this, key, run_id, hz, sink] {
    Control& control = controls_[{key, run_id}];
    control.sink = sink;
    control.max_rate_hz = hz;
    control.allowance = 0;
    control.counted_ns = MonotonicNanos();
    AdvanceRun(run_id);
  });
}

void WatchHub::RemoveControl(ControlSink* sink, EventLoop::Task gone) {
  loop_.Post([this, sink, gone = std::move(gone)]() mutable {
    std::vector<std::string> freed;
    std::erase_if(controls_, [&](const auto& control) {
      if (control.second.sink != sink) return false;
      freed.push_back(control.first.second);
      return true;
    });
    for (const std::string& run_id : freed) AdvanceRun(run_id);
    gone();
  });
}

uint32_t WatchHub::StarvedControls(const std::string& run_id) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(controls_, [&run_id](const auto& control) {
        return control.first.second == run_id && control.second.starved;
      }));
}

void WatchHub::Read(absl::AnyInvocable<void(EventReader&)> task) {
  loop_.Post([this, task = std::move(task)]() mutable { task(*reader_); });
}

void WatchHub::EndAll() {
  loop_.Post([this] {
    ended_ = true;
    while (!events_.empty()) End(events_.begin()->first, Stopping());
    while (!updates_.empty()) End(updates_.begin()->first, Stopping());
  });
}

void WatchHub::AdvanceRun(const std::string& run_id) {
  std::vector<Id> watchers;
  for (const auto& [id, watcher] : events_) {
    if (watcher.watch.run_id == run_id) watchers.push_back(id);
  }
  for (const Id id : watchers) Advance(id);
}

void WatchHub::Advance(Id id) {
  const auto found = events_.find(id);
  if (found == events_.end() || found->second.sending) return;
  Watcher& watcher = found->second;
  Watch& watch = watcher.watch;
  const Run& run = runs_.at(watch.run_id);
  const Numbers last = watcher.until.value_or(run.last);
  auto block = std::make_shared<v1::EventBatch>();
  bool behind = false;
  // Steps, of which there are most, come last: other streams do not wait for
  // their credits.
  for (auto each = kAllStreams.rbegin(); each != kAllStreams.rend(); ++each) {
    const Stream stream = *each;
    if (watch.since[stream] == kUnwanted) continue;
    if (watch.since[stream] >= last[stream]) continue;
    behind = true;
    if (block->ByteSizeLong() > kFullBlockBytes) break;
    EventReader::Limits limits;
    limits.max_rows =
        std::min<uint64_t>(kRowsOfBlock, last[stream] - watch.since[stream]);
    if (CostsCredits(stream)) {
      limits.max_rows =
          std::min<uint64_t>(limits.max_rows, EventsAllowed(id, &watcher));
      if (limits.max_rows == 0) continue;
    }
    const absl::StatusOr<size_t> rows = reader_->Read(
        watch.run_id, stream, watch.since[stream], limits, block.get());
    if (!rows.ok()) return End(id, rows.status());
    if (*rows == 0) continue;
    watch.since[stream] = LastNumber(*block, stream);
    if (CostsCredits(stream)) CountEvents(watcher, *rows);
    watcher.sending = true;
  }
  if (watcher.sending) return watcher.sink->Send(std::move(block));
  if (!behind && (run.ended || !watch.follow)) End(id, absl::OkStatus());
}

void WatchHub::AdvanceUpdates(Id id) {
  const auto found = updates_.find(id);
  if (found == updates_.end() || found->second.sending) return;
  UpdateWatcher& watcher = found->second;
  // Reads the table: its states match their numbers. The supervisor's states
  // may be newer.
  absl::StatusOr<std::vector<RunRow>> runs =
      std::exchange(watcher.from_start, false)
          ? LoadRuns(reader_->database())
          : ReadUpdates(reader_->database(), watcher.since, kUpdatesOfBlock);
  if (!runs.ok()) return End(id, runs.status());
  if (runs->empty()) return;
  // A client that is disconnected in a block continues after its last update.
  std::ranges::sort(*runs, {}, &RunRow::update_seq);
  watcher.since = runs->back().update_seq;
  watcher.sending = true;
  watcher.sink->Send(*std::move(runs));
}

void WatchHub::End(Id id, const absl::Status& status) {
  if (const auto found = events_.find(id); found != events_.end()) {
    EventSink* const sink = found->second.sink;
    const auto run = runs_.find(found->second.watch.run_id);
    if (--run->second.watchers == 0) runs_.erase(run);
    events_.erase(found);
    --watchers_;
    sink->End(status);
  } else if (const auto update = updates_.find(id); update != updates_.end()) {
    UpdateSink* const sink = update->second.sink;
    updates_.erase(update);
    --watchers_;
    sink->End(status);
  }
}

uint64_t WatchHub::EventsAllowed(Id id, Watcher* watcher) {
  const auto found =
      controls_.find({watcher->watch.control_key, watcher->watch.run_id});
  if (found == controls_.end()) return kUnwanted;
  Control& control = found->second;
  uint64_t allowed = control.credits;
  if (!control.starved && control.credits <= kStarvedCredits) {
    control.starved = true;
    gymgui::trainer::ControlEvent starved;
    starved.set_run_id(watcher->watch.run_id);
    starved.set_pause(true);
    control.sink->Send(starved);
  }
  if (!control.starved) allowed -= kStarvedCredits;  // STARVED comes before
  if (control.max_rate_hz != 0) {
    const int64_t now_ns = MonotonicNanos();
    // The maximum burst is a tenth of a second's events, at least one.
    const double most = std::max(1.0, control.max_rate_hz / 10.0);
    control.allowance =
        std::min(most, control.allowance +
                           static_cast<double>(now_ns - control.counted_ns) *
                               1e-9 * control.max_rate_hz);
    control.counted_ns = now_ns;
    allowed = std::min(allowed, static_cast<uint64_t>(control.allowance));
    if (allowed == 0 && control.credits > 0 && !watcher->timer) {
      watcher->timer = true;
      loop_.After(absl::Seconds(1.0 / control.max_rate_hz), [this, id] {
        const auto still = events_.find(id);
        if (still == events_.end()) return;
        still->second.timer = false;
        Advance(id);
      });
    }
  }
  return allowed;
}

void WatchHub::CountEvents(const Watcher& watcher, uint64_t events) {
  const auto found =
      controls_.find({watcher.watch.control_key, watcher.watch.run_id});
  if (found == controls_.end()) return;
  found->second.credits -= static_cast<uint32_t>(events);
  found->second.allowance -= static_cast<double>(events);
}

}  // namespace tandem::slow_lane
