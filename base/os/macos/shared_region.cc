// A region is an object of shm_open with a random name. Its file, in a folder
// for all users, begins with that name, and is as long as the memory, though
// nearly all of it is a hole. RemoveDeadRegions of another engine removes a
// file that was never published, once no process holds its lock.
#include "base/os/shared_region.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/posix/open_above_standard_streams.h"
#include "base/os/posix/region_memory.h"
#include "base/os/posix/region_paths.h"

namespace tandem {
namespace {

constexpr absl::string_view kPrefix = "/tandem-";
constexpr size_t kNameBytes = kPrefix.size() + 16;  // shm_open takes 31

// Returns the name of a file's memory; "": it is no file of a region.
std::string MemoryOf(int file) {
  std::string name(kNameBytes, '\0');
  const ssize_t bytes = pread(file, name.data(), name.size(), 0);
  const bool is_name = bytes == static_cast<ssize_t>(name.size()) &&
                       absl::StartsWith(name, kPrefix);
  return is_name ? name : "";
}

// The file's link from its creation to Publish.
std::string FirstLink(const std::string& memory) {
  return RegionPath(memory.substr(1), SharedRegion::Link::kSpare);
}

// Another user's file can name memory of a third one, or of another size.
absl::StatusOr<UniqueFd> OpenMemory(const SharedRegion& region, int flags) {
  const std::string name = MemoryOf(region.handle());
  UniqueFd memory(shm_open(name.c_str(), flags));
  struct stat status;
  if (!memory.valid() || fstat(memory.get(), &status) != 0) {
    return MakeSystemError("shm_open", absl::StrCat("'", name, "'"), errno);
  }
  if (absl::StrCat(status.st_uid) != region.owner().user ||
      static_cast<uint64_t>(status.st_size) < region.bytes()) {
    return MakeError(
        ErrorCode::kLayoutMismatch,
        absl::StrCat("expected memory of ", region.bytes(), " bytes of uid ",
                     region.owner().user, ", found ", status.st_size,
                     " of uid ", status.st_uid));
  }
  return memory;
}

absl::StatusOr<std::byte*> MapPart(const SharedRegion& region, uint64_t from,
                                   uint64_t bytes,
                                   SharedRegion::Access access) {
  const bool writes = access == SharedRegion::Access::kWrite;
  TANDEM_ASSIGN_OR_RETURN(const UniqueFd memory,
                          OpenMemory(region, writes ? O_RDWR : O_RDONLY));
  void* const base =
      mmap(nullptr, bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ,
           MAP_SHARED, memory.get(), static_cast<off_t>(from));
  if (base == MAP_FAILED) {
    return MakeSystemError("mmap", absl::StrCat(bytes, " bytes of a region"),
                           errno);
  }
  return static_cast<std::byte*>(base);
}

// All users create files there, and remove their own.
void MakeFolder() {
  if (mkdir(kSharedMemoryDir, 0777) == 0) {
    (void)chmod(kSharedMemoryDir, S_ISVTX | 0777);
  }
}

// shm_open applies the process's mask, and no later call changes the mode.
UniqueFd MakeMemory(const std::string& name, mode_t mode) {
  const mode_t before = umask(0);
  UniqueFd memory(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, mode));
  umask(before);
  return memory;
}

}  // namespace

// The system removes old files from /tmp, not from here.
const char kSharedMemoryDir[] = "/var/tmp/tandem";

// The volume's own path of a file, by its number, whatever its links are.
std::string PathToReopen(int file) {
  struct stat status = {};
  (void)fstat(file, &status);
  return absl::StrFormat("/.vol/%d/%d", status.st_dev, status.st_ino);
}

bool GiveSpareLink(int file, const char* spare) {
  return renamex_np(FirstLink(MemoryOf(file)).c_str(), spare, RENAME_EXCL) == 0;
}

void TakeSpareLink(int file, const char* spare) {
  (void)renamex_np(spare, FirstLink(MemoryOf(file)).c_str(), RENAME_EXCL);
}

void RemoveMemoryWithoutLinks(int file) {
  struct stat status;
  if (fstat(file, &status) != 0 || status.st_nlink != 0) return;
  (void)shm_unlink(MemoryOf(file).c_str());
}

absl::Status SharedRegion::CheckRoom(uint64_t bytes, const Texts& texts) {
  return CheckMemory(bytes, absl::StrCat(texts.what, " needs"), texts.smaller);
}

absl::StatusOr<SharedRegion> SharedRegion::Create(uint64_t bytes,
                                                  bool group_access,
                                                  const Texts& texts) {
  TANDEM_RETURN_IF_ERROR(CheckRoom(bytes, texts));
  const mode_t mode = group_access ? 0660 : 0600;
  uint64_t number = 0;
  arc4random_buf(&number, sizeof(number));
  const std::string name = absl::StrFormat("%s%016x", kPrefix, number);
  const std::string path = FirstLink(name);
  MakeFolder();
  UniqueFd file(
      OpenAboveStandardStreams(path.c_str(), O_RDWR | O_CREAT | O_EXCL, mode));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  const UniqueFd memory = MakeMemory(name, mode);
  const auto size = static_cast<off_t>(bytes);
  if (memory.valid() && ftruncate(memory.get(), size) == 0 &&
      fchmod(file.get(), mode) == 0 && ftruncate(file.get(), size) == 0 &&
      pwrite(file.get(), name.data(), name.size(), 0) ==
          static_cast<ssize_t>(name.size())) {
    return Of(std::move(file));
  }
  const int error = errno;
  if (memory.valid()) (void)shm_unlink(name.c_str());
  unlink(path.c_str());
  return MakeSystemError("shm_open", absl::StrCat(bytes, " bytes"), error);
}

bool SharedRegion::Read(uint64_t offset, void* into, size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  const uint64_t within = offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const absl::StatusOr<std::byte*> base =
      MapPart(*this, offset - within, within + bytes, Access::kRead);
  if (!base.ok()) return false;
  std::memcpy(into, *base + within, bytes);
  Unmap(*base, within + bytes);
  return true;
}

absl::StatusOr<std::byte*> SharedRegion::Map(uint64_t bytes,
                                             Access access) const {
  TANDEM_ASSIGN_OR_RETURN(std::byte* const base,
                          MapPart(*this, 0, bytes, access));
  if (access == Access::kWrite) TouchPages(base, bytes);
  return base;
}

uint64_t SharedRegion::HugePageBytes(const std::byte*) { return 0; }

}  // namespace tandem
