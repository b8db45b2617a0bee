#include "slow_lane/proxy/file_sender.h"

#include <fcntl.h>
#include <grpcpp/client_context.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "base/printable.h"
#include "slow_lane/proxy/wait_until.h"
#include "slow_lane/runs/relayed_files.h"

namespace tandem::slow_lane {
namespace {

constexpr std::chrono::seconds kPause(1);
constexpr std::chrono::seconds kCallLimit(30);

int64_t ModifiedNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

FileSender::FileSender(const DaemonLink& link, RunFolder folder,
                       const std::string& run_id, const std::string& token)
    : link_(link), folder_(std::move(folder)) {
  request_.set_run_id(run_id);
  request_.set_token(token);
  // The daemon finds this file if both machines share the folder.
  request_.set_marker(absl::StrCat(".sender-", getpid()));
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void FileSender::Run(const std::stop_token& stop) {
  stub_ = link_.NewStub();
  const std::string marker =
      absl::StrCat(folder_.path(), "/", request_.marker());
  UniqueFd(open(marker.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  std::string problem;
  while (wanted_ && !finished()) {
    // SYNC(files.finish): acquire; before the files are read
    const bool last = finishing_.load(std::memory_order_acquire);
    const absl::Status sent = SendAll(stop);
    if (stop.stop_requested()) break;
    if (absl::IsUnavailable(sent)) stub_ = link_.NewStub();
    // The proxy's own link shows whether there is a daemon.
    if (!sent.ok() && !absl::IsUnavailable(sent) && sent.message() != problem) {
      problem = std::string(sent.message());
      std::cerr << PrintableLines(absl::StrCat("its files: ", problem, "\n"))
                << std::flush;
    }
    // relaxed: as at its load.
    if (last && !absl::IsUnavailable(sent)) {
      finished_.store(true, std::memory_order_relaxed);
    }
    WaitUntil(std::chrono::steady_clock::now() + kPause, stop);
  }
  unlink(marker.c_str());
  // relaxed: as at its load.
  finished_.store(true, std::memory_order_relaxed);
}

absl::Status FileSender::SendAll(const std::stop_token& stop) {
  absl::Status first;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_.path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!IsRelayedFile(name) || !entry.is_regular_file(error) ||
        (sent_.size() >= kMaxRelayedFiles && !sent_.contains(name))) {
      continue;
    }
    // One that cannot be sent leaves the others alone.
    first.Update(SendFile(name, stop));
    if (!wanted_ || absl::IsUnavailable(first)) break;
  }
  return first;
}

absl::Status FileSender::SendFile(const std::string& name,
                                  const std::stop_token& stop) {
  const std::string path = absl::StrCat(folder_.path(), "/", name);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return absl::OkStatus();  // removed meanwhile
  }
  const bool is_log = absl::EndsWith(name, ".log");
  const auto whole = static_cast<uint64_t>(info.st_size);
  const uint64_t size = std::min(whole, kMaxRelayedFile);
  if (!is_log && size < whole) return absl::OkStatus();
  Sent& sent = sent_[name];
  // A log grows at its end; of another file any byte may have changed.
  const bool is_new = is_log
                          ? sent.inode != info.st_ino || size < sent.bytes
                          : sent.inode != info.st_ino || sent.size != whole ||
                                sent.modified_ns != ModifiedNs(info);
  if (is_new) sent = {.inode = info.st_ino};
  while (sent.bytes < size) {
    std::string* const data = request_.mutable_data();
    data->resize(std::min<uint64_t>(size - sent.bytes, kMaxRelayedPart));
    const ssize_t bytes = pread(file.get(), data->data(), data->size(),
                                static_cast<off_t>(sent.bytes));
    if (bytes < 0) return MakeSystemError("read", path, errno);
    if (bytes == 0) break;
    data->resize(static_cast<size_t>(bytes));
    request_.set_name(name);
    request_.set_offset(sent.bytes);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    v1::RelayFileResponse response;
    const grpc::Status result = stub_->RelayFile(&context, request_, &response);
    if (!result.ok()) {
      sent = {};
      // The numbers of both enumerations are gRPC's.
      return absl::Status(static_cast<absl::StatusCode>(result.error_code()),
                          result.error_message());
    }
    wanted_ = response.wanted();
    if (!wanted_) return absl::OkStatus();
    sent.bytes += static_cast<uint64_t>(bytes);
  }
  sent.size = whole;
  sent.modified_ns = ModifiedNs(info);
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane
