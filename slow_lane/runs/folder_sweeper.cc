#include "slow_lane/runs/folder_sweeper.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

using std::filesystem::directory_iterator;

FolderSweeper::FolderSweeper(absl::string_view data_dir)
    : runs_(absl::StrCat(data_dir, "/runs")), thread_([this] { Run(); }) {}

FolderSweeper::~FolderSweeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

void FolderSweeper::Sweep() {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  wake_.notify_one();
}

void FolderSweeper::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return wanted_ || stopping_; });
    if (stopping_) return;
    wanted_ = false;
    lock.unlock();
    RemoveAll();
    lock.lock();
  }
}

bool FolderSweeper::IsStopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void FolderSweeper::RemoveAll() {
  std::error_code error;
  for (directory_iterator entry(runs_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!entry->path().filename().string().starts_with(
            RunFolder::kAsidePrefix) ||
        stuck_.contains(path)) {
      continue;
    }
    if (Remove(path)) continue;
    if (IsStopping()) return;
    stuck_.insert(path);
  }
}

bool FolderSweeper::Remove(const std::string& path) {
  if (IsStopping()) return false;
  std::error_code error;
  // No link is followed.
  if (std::filesystem::symlink_status(path, error).type() ==
      std::filesystem::file_type::directory) {
    for (directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      if (!Remove(entry->path().string())) return false;
    }
  }
  if (!error) std::filesystem::remove(path, error);
  if (!error) return true;
  std::cerr << "tandem-daemon: a deleted run's folder: expected to remove "
            << path << ", found: " << error.message()
            << "; next: remove it by hand" << std::endl;
  return false;
}

}  // namespace tandem::slow_lane
