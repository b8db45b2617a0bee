#include "viz/core/run_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "transport/base/frame_geometry.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/found_region.h"
#include "transport/memory/region_name.h"
#include "transport/memory/region_plan.h"

namespace tandem {
namespace {

constexpr size_t kMaxEntries = 1000;

// A copy of the first bytes at `offset`, if they are there. The shared words in
// it are copied as bytes: a copy that another writer tears only shows a wrong
// number for a moment.
template <typename Header>
std::optional<Header> ReadHeader(int fd, uint64_t offset) {
  std::byte bytes[sizeof(Header)];
  if (pread(fd, bytes, sizeof(bytes), static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(sizeof(bytes))) {
    return std::nullopt;
  }
  std::optional<Header> header(std::in_place);
  std::memcpy(static_cast<void*>(&*header), bytes, sizeof(bytes));
  return header;
}

// Fills in what the frame ring says of itself; false: nothing one could show.
bool ReadRing(int fd, uint64_t offset, uint64_t bytes, RunEntry* entry) {
  const std::optional<FlanHeader> ring = ReadHeader<FlanHeader>(fd, offset);
  if (!ring.has_value()) {
    entry->problem = "too short for a frame ring";
    return false;
  }
  const absl::StatusOr<FrameGeometry> geometry = CheckFrameRing(*ring, bytes);
  if (!geometry.ok()) {
    entry->problem = std::string(geometry.status().message());
    return false;
  }
  entry->width = geometry->width;
  entry->height = geometry->height;
  entry->channels = geometry->channels;
  // One look, no order needed: numbers for a list.
  entry->frames = ring->head.load(std::memory_order_relaxed);
  entry->rolling_return = ring->rolling_return.load(std::memory_order_relaxed);
  entry->step_rate_hz = ring->step_rate_hz.load(std::memory_order_relaxed);
  return true;
}

struct SharedFile {
  UniqueFd fd;  // none: no plain file, or not to be read
  uint64_t bytes = 0;
  // Attaching would refuse it: whose it is may truncate it under us.
  bool is_anothers = false;
};

SharedFile OpenShared(const std::string& name) {
  SharedFile file;
  file.fd = UniqueFd(open(RegionPath(name).c_str(),
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about = {};
  if (!file.fd.valid()) {
    file.is_anothers = errno == EACCES;
  } else if (fstat(file.fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    file.fd.reset();
  } else {
    file.bytes = static_cast<uint64_t>(about.st_size);
    file.is_anothers = !MayTrust(about);
  }
  return file;
}

// Says so, and nothing else of it.
RunEntry AnothersEntry(RunEntry entry, const std::string& name) {
  entry.is_anothers = true;
  entry.problem = absl::StrCat("belongs to ", OwnerOf(RegionPath(name)),
                               "; to watch it, run the viewer as that user");
  return entry;
}

std::optional<RunEntry> ReadSegment(const std::string& name,
                                    uint64_t* counter) {
  const SharedFile file = OpenShared(name);
  RunEntry entry;
  entry.kind = RunEntry::Kind::kSegment;
  entry.run = std::string(absl::StripPrefix(name, kFlanSegmentPrefix));
  if (file.is_anothers) return AnothersEntry(std::move(entry), name);
  if (!file.fd.valid()) return std::nullopt;
  ReadRing(file.fd.get(), 0, file.bytes, &entry);
  *counter = entry.frames;
  return entry;
}

std::optional<RunEntry> ReadRegion(const std::string& name, uint64_t* counter) {
  const SharedFile file = OpenShared(name);
  // Most files of /dev/shm are no regions: one small read tells.
  uint32_t magic = 0;
  if (!file.fd.valid() ||
      pread(file.fd.get(), &magic, sizeof(magic), 0) !=
          static_cast<ssize_t>(sizeof(magic)) ||
      magic != kLrbcMagic) {
    return std::nullopt;
  }
  RunEntry entry;
  entry.kind = RunEntry::Kind::kRegion;
  entry.run = name;
  if (file.is_anothers) return AnothersEntry(std::move(entry), name);
  const absl::StatusOr<LrbcHeader> plan = AttachedRegion::Peek(name);
  if (!plan.ok()) return std::nullopt;  // no living engine
  entry.task = TaskOf(*plan);
  entry.num_envs = plan->num_envs;
  if (plan->flan_offset == 0) {
    entry.problem = "no frames: its engine lacks --frames=WxH";
  } else {
    ReadRing(file.fd.get(), plan->flan_offset, plan->flan_size, &entry);
  }
  // Steps, too: an engine without viewers renders nothing.
  *counter = entry.frames + plan->frame_seq.load(std::memory_order_relaxed);
  return entry;
}

}  // namespace

const std::vector<RunEntry>& RunList::Scan(int64_t now_ns) {
  entries_.clear();
  for (auto& [name, motion] : motions_) motion.seen = false;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kSharedMemoryDir),
                                                   closedir);
  while (folder != nullptr && entries_.size() < kMaxEntries) {
    const dirent* file = readdir(folder.get());
    if (file == nullptr) break;
    const std::string name = file->d_name;
    uint64_t counter = 0;
    std::optional<RunEntry> entry;
    if (absl::StartsWith(name, kFlanSegmentPrefix)) {
      entry = ReadSegment(name, &counter);
    } else if (CheckRegionName(name).ok()) {
      entry = ReadRegion(name, &counter);
    }
    if (!entry.has_value()) continue;
    Judge(counter, now_ns, &*entry);
    entries_.push_back(*std::move(entry));
  }
  std::erase_if(motions_, [](const auto& item) { return !item.second.seen; });
  std::sort(entries_.begin(), entries_.end(),
            [](const RunEntry& a, const RunEntry& b) { return a.run < b.run; });
  return entries_;
}

void RunList::Judge(uint64_t counter, int64_t now_ns, RunEntry* entry) {
  const bool is_region = entry->kind == RunEntry::Kind::kRegion;
  auto [at, is_new] =
      motions_.try_emplace(absl::StrCat(is_region ? "r" : "s", entry->run));
  Motion& motion = at->second;
  motion.seen = true;
  motion.moving = !is_new && counter != motion.counter;
  if (is_new || motion.moving) motion.changed_ns = now_ns;
  motion.counter = counter;
  entry->moving = motion.moving;
  entry->still_since_ns = motion.changed_ns;
}

}  // namespace tandem
