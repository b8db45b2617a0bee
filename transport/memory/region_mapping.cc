#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "schema/layout/shared_word.h"
#include "transport/region.h"

namespace tandem {

absl::StatusOr<std::shared_ptr<const RegionMapping>> RegionMapping::Map(
    int fd, uint64_t bytes) {
  // The existing mappings of this process, by file. Never destroyed: views may
  // outlive static objects.
  static auto* const mutex = new std::mutex;
  static auto* const mapped =
      new std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const RegionMapping>>;
  struct stat file;
  if (fstat(fd, &file) != 0) return MakeSystemError("fstat", "region", errno);
  const std::unique_lock<std::mutex> lock(*mutex, std::try_to_lock);
  // Another thread holds the mutex, or held it when this process was forked.
  if (!lock.owns_lock()) return MapAnew(fd, bytes);
  std::erase_if(*mapped, [](const auto& entry) {
    return entry.second.expired();  // another file may get its inode number
  });
  std::weak_ptr<const RegionMapping>& entry =
      (*mapped)[{file.st_dev, file.st_ino}];
  if (std::shared_ptr<const RegionMapping> living = entry.lock();
      living != nullptr && living->bytes() == bytes) {
    return living;
  }
  absl::StatusOr<std::shared_ptr<const RegionMapping>> mapping =
      MapAnew(fd, bytes);
  if (mapping.ok()) entry = *mapping;
  return mapping;
}

absl::StatusOr<std::shared_ptr<const RegionMapping>> RegionMapping::MapAnew(
    int fd, uint64_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return MakeSystemError("mmap", absl::StrCat(bytes, " bytes of a region"),
                           errno);
  }
  std::shared_ptr<const RegionMapping> mapping(
      new RegionMapping(static_cast<std::byte*>(base), bytes));
  madvise(base, bytes, MADV_HUGEPAGE);  // best effort
#ifdef MADV_POPULATE_WRITE
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return mapping;
  if (errno != EINVAL) {  // the file is shorter than `bytes`
    return MakeSystemError("madvise(MADV_POPULATE_WRITE)",
                           absl::StrCat(bytes, " bytes of a region"), errno);
  }
#endif
  // For kernels before 5.14: a read maps each page, which is reserved already.
  const uint64_t page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t at = 0; at < bytes; at += page_bytes) {
    // relaxed: only the fault matters.
    mapping->At<SharedWord<uint32_t>>(at)->load(std::memory_order_relaxed);
  }
  return mapping;
}

absl::StatusOr<std::shared_ptr<const RegionMapping>> RegionMapping::MapReadOnly(
    int fd, uint64_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return MakeSystemError("mmap", absl::StrCat(bytes, " bytes to read"),
                           errno);
  }
  return std::shared_ptr<const RegionMapping>(
      new RegionMapping(static_cast<std::byte*>(base), bytes));
}

RegionMapping::~RegionMapping() { munmap(base_, bytes_); }

uint64_t RegionMapping::HugePageBytes() const {
  std::ifstream smaps("/proc/self/smaps");
  const std::string start =
      absl::StrFormat("%x-", reinterpret_cast<uintptr_t>(base_));
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    if (absl::StartsWith(line, start)) ours = true;
    if (!ours || !absl::StartsWith(line, "ShmemPmdMapped:")) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    return words.size() > 1 && absl::SimpleAtoi(words[1], &kibibytes)
               ? kibibytes * 1024
               : 0;
  }
  return 0;
}

}  // namespace tandem
