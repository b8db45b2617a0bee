// PlacedFile on Windows: shared memory of any name and content.
// placed_file.h describes it.

#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/os/machine.h"
#include "base/os/shared_region.h"
#include "base/os/side_locks.h"
#include "base/os/unique_fd.h"
#include "base/os/windows/objects.h"
#include "schema/layout/lrbc.h"

namespace tandem {

class PlacedFile {
 public:
  enum State { kAlive, kDead };
  PlacedFile(std::string name, absl::string_view bytes, State state)
      : name_(std::move(name)), state_(state) {
    Place(bytes);
  }
  ~PlacedFile() { SharedRegion::Unmap(base_, room_); }
  PlacedFile(const PlacedFile&) = delete;
  PlacedFile& operator=(const PlacedFile&) = delete;

  const std::string& name() const { return name_; }
  std::string path() const { return RegionPath(name_); }

  void Write(uint64_t offset, absl::string_view bytes) {
    if (offset + bytes.size() > bytes_) Resize(offset + bytes.size());
    std::memcpy(base_ + offset, bytes.data(), bytes.size());
  }
  template <typename Word>
  void WriteWord(uint64_t offset, Word word) {
    Write(offset, {reinterpret_cast<const char*>(&word), sizeof(word)});
  }
  // Places other memory of that size: sections keep theirs.
  void Resize(uint64_t bytes) {
    std::string content = Bytes();
    content.resize(bytes);
    SharedRegion::Unmap(base_, room_);
    locks_.clear();
    Place(content);
  }
  std::string Bytes() const {
    return {reinterpret_cast<const char*>(base_), bytes_};
  }

  void Lock(int64_t byte) {
    const auto lock =
        locks_.emplace(byte, SideLocks::On(*memory_).value()).first;
    if (!lock->second.TryAcquire(byte)) std::abort();
  }
  void Unlock(int64_t byte) { locks_.erase(byte); }

 private:
  void Place(absl::string_view bytes) {
    name_link_.reset();
    spare_link_.reset();
    bytes_ = bytes.size();
    room_ = std::max<uint64_t>(bytes_, 1);  // no section is empty
    SharedRegion::Id id;
    FillRandom(std::as_writable_bytes(std::span(&id, 1)));
    // Its own name has its size, as that of every region.
    const UniqueFd section = MakeMemory(MemoryName(id, bytes_), room_, false);
    memory_ = SharedRegion::OfHandle(section.get()).value();
    base_ = memory_->Map(room_, SharedRegion::Access::kWrite).value();
    std::memcpy(base_, bytes.data(), bytes_);
    if (state_ == kAlive) {
      Lock(kEngineLockByte);
      Link(absl::StrCat(".", name_, ".tandem"), &spare_link_);
    }
    Link(name_, &name_link_);
  }
  void Link(absl::string_view name, UniqueFd* link) {
    if (MakeLink(name, memory_->handle(), false, link) != 0) std::abort();
  }

  std::string name_;
  State state_;
  std::optional<SharedRegion> memory_;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t room_ = 0;
  std::map<int64_t, SideLocks> locks_;
  UniqueFd name_link_;
  UniqueFd spare_link_;
};

}  // namespace tandem
