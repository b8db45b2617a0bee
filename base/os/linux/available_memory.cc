#include "base/os/available_memory.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem {
namespace {

// Returns a value from lines such as "MemAvailable:  1024 kB".
std::optional<uint64_t> BytesIn(const char* path, absl::string_view wanted) {
  std::ifstream file(path);
  std::string key;
  for (std::string rest; file >> key; std::getline(file, rest)) {
    uint64_t kibibytes = 0;
    if (key == wanted && file >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

// Version 1 writes "no limit" as a number above this one.
constexpr uint64_t kUnlimitedBytes = uint64_t{1} << 60;

struct Version {
  absl::string_view limit;
  absl::string_view used;
  // A field of memory.stat, for the group and the groups below it.
  std::array<absl::string_view, 3> reclaimable;
};

constexpr Version kVersion1 = {
    .limit = "memory.limit_in_bytes",
    .used = "memory.usage_in_bytes",
    .reclaimable = {"total_inactive_file", "total_active_file", ""}};
constexpr Version kVersion2 = {
    .limit = "memory.max",
    .used = "memory.current",
    .reclaimable = {"inactive_file", "active_file", "slab_reclaimable"}};

// Reads a file of one number; nullopt for "max" and for a missing file.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

uint64_t ReclaimableIn(const std::string& folder, const Version& version) {
  std::ifstream stat(absl::StrCat(folder, "/memory.stat"));
  uint64_t bytes = 0;
  std::string key;
  for (uint64_t number = 0; stat >> key >> number;) {
    if (absl::c_linear_search(version.reclaimable, key)) bytes += number;
  }
  return bytes;
}

std::optional<MemoryLimit> LimitOf(const std::string& folder,
                                   const Version& version) {
  std::string file = absl::StrCat(folder, "/", version.limit);
  const std::optional<uint64_t> limit = NumberIn(file);
  if (!limit || *limit >= kUnlimitedBytes) return std::nullopt;
  const uint64_t used =
      NumberIn(absl::StrCat(folder, "/", version.used)).value_or(0);
  return MemoryLimit{
      .limit_bytes = *limit,
      .used_bytes = used,
      .reclaimable_bytes = std::min(used, ReclaimableIn(folder, version)),
      .file = std::move(file)};
}

void TakeTightest(const std::string& mount, absl::string_view path,
                  const Version& version,
                  std::optional<MemoryLimit>* tightest) {
  // The path of a group of another namespace begins with "/..".
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (absl::c_linear_search(parts, "..")) path = "";
  while (absl::EndsWith(path, "/")) path.remove_suffix(1);
  for (;;) {
    std::optional<MemoryLimit> limit =
        LimitOf(absl::StrCat(mount, path), version);
    if (limit && (!*tightest ||
                  limit->available_bytes() < (*tightest)->available_bytes())) {
      *tightest = std::move(limit);
    }
    if (path.empty()) return;
    path = path.substr(0, path.rfind('/'));
    // A version 1 group with use_hierarchy 0 does not limit the groups below
    // it.
    if (NumberIn(absl::StrCat(mount, path, "/memory.use_hierarchy")) == 0) {
      return;
    }
  }
}

}  // namespace

std::optional<MemoryLimit> TightestMemoryLimit(const ControlGroupPaths& paths) {
  std::optional<MemoryLimit> tightest;
  std::ifstream groups(paths.process);
  // Each line: hierarchy, controllers, path; version 2 names no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      TakeTightest(paths.mount, parts[2], kVersion2, &tightest);
    } else if (absl::c_linear_search(controllers, "memory")) {
      TakeTightest(absl::StrCat(paths.mount, "/memory"), parts[2], kVersion1,
                   &tightest);
    }
  }
  return tightest;
}

uint64_t FreeMachineBytes() {
  return BytesIn("/proc/meminfo", "MemAvailable:")
      .value_or(std::numeric_limits<uint64_t>::max());
}

uint64_t ResidentMemoryBytes() {
  constexpr char kStatus[] = "/proc/self/status";
  return BytesIn(kStatus, "VmRSS:").value_or(0) +
         BytesIn(kStatus, "VmPTE:").value_or(0);
}

}  // namespace tandem
