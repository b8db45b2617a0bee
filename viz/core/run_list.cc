#include "viz/core/run_list.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "transport/frames/frame_ring_report.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/observed_file.h"
#include "transport/memory/region_name.h"
#include "transport/memory/region_plan.h"
#include "viz/core/run_links.h"

namespace tandem {
namespace {

constexpr size_t kMaxEntries = 1000;

// Whether this user may attach to the file. If not, the entry has its owner
// only.
bool MayWatch(const absl::Status& status, RunEntry* entry) {
  entry->is_anothers = CodeOf(status) == ErrorCode::kAccessDenied;
  if (!status.ok()) entry->problem = std::string(status.message());
  return status.ok();
}

void ReadRing(const ObservedFile& file, uint64_t offset, uint64_t bytes,
              RunEntry* entry) {
  const FrameRingReport ring =
      ReadFrameRing(file, offset, bytes, /*grace_ns=*/0);
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

std::optional<RunEntry> RunList::ReadSegment(const std::string& name,
                                             Seen* seen) {
  RunEntry entry;
  entry.kind = RunEntry::Kind::kSegment;
  entry.run = std::string(absl::StripPrefix(name, kFlanSegmentPrefix));
  const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name);
  if (!MayWatch(file.ok() ? file->CheckTrust(name) : file.status(), &entry)) {
    return entry.is_anothers ? std::optional(entry) : std::nullopt;
  }
  ReadRing(*file, 0, file->bytes(), &entry);
  seen->counter = entry.frames;
  entry.daemon_run = entry.run;
  return entry;
}

std::optional<RunEntry> RunList::ReadRegion(const std::string& name,
                                            Seen* seen) {
  const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name);
  // A small read excludes most files of /dev/shm, which are not regions.
  uint32_t magic = 0;
  if (!file.ok() || !file->Read(0, &magic, sizeof(magic)) ||
      magic != kLrbcMagic) {
    return std::nullopt;
  }
  RunEntry entry;
  entry.kind = RunEntry::Kind::kRegion;
  entry.run = name;
  if (!MayWatch(file->CheckTrust(name), &entry)) return entry;
  const absl::StatusOr<LrbcHeader> plan = AttachedRegion::Peek(name);
  if (!plan.ok()) return std::nullopt;  // no living engine
  entry.task = TaskOf(*plan);
  entry.num_envs = plan->num_envs;
  if (plan->flan_offset == 0) {
    entry.problem = "no frames: its engine lacks --frames=WxH";
  } else {
    ReadRing(*file, plan->flan_offset, plan->flan_size, &entry);
  }
  // Counts steps, too: an engine without viewers renders nothing.
  seen->counter =
      entry.frames + plan->frame_seq.load(std::memory_order_relaxed);
  seen->pid = plan->server_pid.load(std::memory_order_relaxed);
  return entry;
}

const std::vector<RunEntry>& RunList::Scan(int64_t now_ns) {
  entries_.clear();
  for (auto& [name, motion] : motions_) motion.seen = false;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kSharedMemoryDir),
                                                   closedir);
  while (folder != nullptr && entries_.size() < kMaxEntries) {
    const dirent* file = readdir(folder.get());
    if (file == nullptr) break;
    const std::string name = file->d_name;
    Seen seen;
    std::optional<RunEntry> entry;
    if (absl::StartsWith(name, kFlanSegmentPrefix)) {
      entry = ReadSegment(name, &seen);
    } else if (CheckRegionName(name).ok()) {
      entry = ReadRegion(name, &seen);
    }
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
