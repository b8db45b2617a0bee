#include "viz/core/run_list.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"
#include "transport/report.h"
#include "viz/core/run_links.h"

namespace tandem {
namespace {

constexpr size_t kMaxEntries = 1000;
// Of the last frame. While watched, an engine draws at least once a second.
constexpr int64_t kRateIsOldNs = 3'000'000'000;

void TakeFrames(const FrameRingReport& ring, RunEntry* entry) {
  entry->problem = ring.problem;
  if (!ring.problem.empty()) return;
  entry->width = ring.geometry.width;
  entry->height = ring.geometry.height;
  entry->channels = ring.geometry.channels;
  entry->frames = ring.frames;
  entry->rolling_return = ring.metrics.rolling_return;
  entry->step_rate_hz = ring.metrics.step_rate_hz;
}

}  // namespace

std::optional<RunEntry> RunList::Read(const std::string& name, Seen* seen) {
  const std::optional<RunReport> report = ReadRunReport(name);
  if (!report.has_value()) return std::nullopt;
  const bool is_segment = absl::StartsWith(name, kFlanSegmentPrefix);
  RunEntry entry;
  entry.kind = is_segment ? RunEntry::Kind::kSegment : RunEntry::Kind::kRegion;
  entry.run = std::string(absl::StripPrefix(name, kFlanSegmentPrefix));
  if (!report->access.ok()) {  // its owner only
    entry.is_anothers = CodeOf(report->access) == ErrorCode::kAccessDenied;
    entry.problem = std::string(report->access.message());
    return entry;
  }
  if (report->frames.has_value()) {
    TakeFrames(*report->frames, &entry);
  } else {
    entry.problem = "no frames: its engine lacks --frames=WxH";
  }
  seen->counter = entry.frames;
  if (is_segment) {
    entry.daemon_run = entry.run;
    return entry;
  }
  entry.task = TaskOf(*report->region);
  entry.num_envs = report->region->num_envs;
  // Counts steps, too: an engine without viewers renders nothing.
  seen->counter += report->region->frame_seq.load(std::memory_order_relaxed);
  seen->pid = report->region->server_pid.load(std::memory_order_relaxed);
  return entry;
}

const std::vector<RunEntry>& RunList::Scan(int64_t now_ns) {
  entries_.clear();
  for (auto& [name, motion] : motions_) motion.seen = false;
  for (const auto& [name, link] : SharedRegion::List()) {
    if (entries_.size() >= kMaxEntries) break;
    if (link == SharedRegion::Link::kSpare) continue;
    Seen seen;
    std::optional<RunEntry> entry = Read(name, &seen);
    if (!entry.has_value()) continue;
    Judge(seen, now_ns, &*entry);
    entries_.push_back(*std::move(entry));
  }
  std::erase_if(motions_, [](const auto& item) { return !item.second.seen; });
  std::ranges::sort(entries_, {}, &RunEntry::run);
  return entries_;
}

void RunList::Judge(const Seen& seen, int64_t now_ns, RunEntry* entry) {
  const bool is_region = entry->kind == RunEntry::Kind::kRegion;
  auto [at, is_new] =
      motions_.try_emplace(absl::StrCat(is_region ? "r" : "s", entry->run));
  Motion& motion = at->second;
  motion.seen = true;
  motion.moving = !is_new && seen.counter != motion.counter;
  if (is_new || motion.moving) motion.changed_ns = now_ns;
  motion.counter = seen.counter;
  // An engine measures its rate when it draws.
  if (!is_new && entry->frames != motion.frames) motion.drawn_ns = now_ns;
  motion.frames = entry->frames;
  if (is_region &&
      (!motion.drawn_ns || now_ns - *motion.drawn_ns > kRateIsOldNs)) {
    entry->step_rate_hz = std::numeric_limits<double>::quiet_NaN();
  }
  if (is_region && seen.pid != 0) {
    if (seen.pid != motion.pid) {
      motion.pid = seen.pid;
      motion.daemon_run = RunOfProcess(static_cast<pid_t>(seen.pid));
    }
    entry->daemon_run = motion.daemon_run;
  }
  entry->moving = motion.moving;
  entry->still_since_ns = motion.changed_ns;
}

}  // namespace tandem
