#include "slow_lane/runs/run_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/quoted.h"
#include "slow_lane/runs/durable_file.h"

namespace tandem::slow_lane {
namespace {

using nlohmann::json;

// The first words of an exit file, by WorkerExit::How.
constexpr absl::string_view kHowWords[] = {"exited", "signalled", "unknown",
                                           "not_started"};

// Converts the system's strings, which are any bytes, to JSON's, which are
// UTF-8.
json FromBytes(const std::string& bytes) {
  try {
    // Throws for invalid UTF-8.
    (void)json(bytes).dump();
    return bytes;
  } catch (const json::exception&) {
    return {{"base64", absl::Base64Escape(bytes)}};
  }
}

std::string ToBytes(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string bytes;
  if (!absl::Base64Unescape(value.at("base64").get<std::string>(), &bytes)) {
    throw std::invalid_argument("base64 expected");
  }
  return bytes;
}

json FromList(const std::vector<std::string>& list) {
  json array = json::array();
  for (const std::string& each : list) array.push_back(FromBytes(each));
  return array;
}

std::vector<std::string> ToList(const json& array) {
  std::vector<std::string> list;
  for (const json& each : array) list.push_back(ToBytes(each));
  return list;
}

absl::Status NoRecord(const std::string& path, absl::string_view expected,
                      absl::string_view found) {
  return absl::DataLossError(
      absl::StrCat(path, ": expected ", expected, ", found ", Quoted(found)));
}

struct flock WholeFile(short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno != EEXIST) return MakeSystemError("mkdir", path, errno);
  return absl::AlreadyExistsError(
      absl::StrCat("run folder: expected none yet, found ", path));
}

}  // namespace

std::string WorkerExit::Describe() const {
  switch (how) {
    case How::kExited:
      return absl::StrCat("exited with code ", number);
    case How::kSignalled: {
      const char* const name = sigdescr_np(number);
      return absl::StrCat("ended by signal ", number, " (",
                          name != nullptr ? name : "no name", ")");
    }
    case How::kUnknown:
      return absl::StrCat("ended, exit status unknown: ", reason);
    case How::kNotStarted:
      return absl::StrCat("not started: ", reason);
  }
  return "";
}

v1::WorkerEnded ToProto(const WorkerExit& exit) {
  v1::WorkerEnded proto;
  switch (exit.how) {
    case WorkerExit::How::kExited:
      proto.set_exit_code(exit.number);
      break;
    case WorkerExit::How::kSignalled:
      proto.set_signal(exit.number);
      break;
    case WorkerExit::How::kUnknown:
      proto.set_unknown(exit.reason);
      break;
    case WorkerExit::How::kNotStarted:
      proto.set_not_started(exit.reason);
      break;
  }
  return proto;
}

WorkerExit FromProto(const v1::WorkerEnded& ended) {
  using How = WorkerExit::How;
  switch (ended.how_case()) {
    case v1::WorkerEnded::kExitCode:
      return {How::kExited, ended.exit_code(), ""};
    case v1::WorkerEnded::kSignal:
      return {How::kSignalled, ended.signal(), ""};
    case v1::WorkerEnded::kUnknown:
      return {How::kUnknown, 0, ended.unknown()};
    case v1::WorkerEnded::kNotStarted:
      return {How::kNotStarted, 0, ended.not_started()};
    case v1::WorkerEnded::HOW_NOT_SET:
      break;
  }
  return {How::kUnknown, 0, "its proxy did not say"};
}

RunFolder RunFolder::At(absl::string_view data_dir, absl::string_view run_id) {
  return RunFolder(absl::StrCat(data_dir, "/runs/", run_id));
}

std::string RunFolder::File(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::Status RunFolder::Create() const {
  const std::string runs = std::filesystem::path(path_).parent_path().string();
  const absl::Status outer = MakeFolder(runs);
  if (!outer.ok() && !absl::IsAlreadyExists(outer)) return outer;
  TANDEM_RETURN_IF_ERROR(MakeFolder(path_));
  if (outer.ok()) {
    const std::string data = std::filesystem::path(runs).parent_path().string();
    TANDEM_RETURN_IF_ERROR(SyncFolder(data));
  }
  return SyncFolder(runs);
}

absl::Status RunFolder::SetAside() const {
  return MoveAside(path_, std::filesystem::path(path_).filename().string());
}

absl::Status RunFolder::SetCheckpointsAside() const {
  const std::string name = std::filesystem::path(path_).filename().string();
  return MoveAside(checkpoints_path(), absl::StrCat(name, ".checkpoints"));
}

absl::Status RunFolder::MoveAside(const std::string& path,
                                  const std::string& name) const {
  const std::string runs = std::filesystem::path(path_).parent_path().string();
  for (int number = 1;; ++number) {
    const std::string aside =
        absl::StrCat(runs, "/", kAsidePrefix, name, "-", number);
    if (rename(path.c_str(), aside.c_str()) == 0 || errno == ENOENT) {
      return absl::OkStatus();
    }
    // An earlier folder of that name is not removed yet.
    if (errno == EEXIST || errno == ENOTEMPTY) continue;
    return MakeSystemError("rename", path, errno);
  }
}

absl::Status RunFolder::WriteConfig(absl::string_view canonical_json) const {
  return WriteDurably(config_path(), canonical_json);
}

absl::Status RunFolder::WriteLaunchPlan(const LaunchPlan& plan) const {
  const json object = {{"argv", FromList(plan.argv)},
                       {"environment", FromList(plan.environment)},
                       {"working_directory", FromBytes(plan.working_directory)},
                       {"token", plan.token},
                       {"attempt", plan.attempt},
                       {"stderr_begin", plan.stderr_begin}};
  const absl::Status made = MakeFolder(checkpoints_path());
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  return WriteDurably(launch_path(), object.dump(1) + "\n");
}

absl::StatusOr<LaunchPlan> RunFolder::ReadLaunchPlan() const {
  TANDEM_ASSIGN_OR_RETURN(const auto text, ReadIfExists(launch_path()));
  if (!text.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("launch plan: expected ", launch_path(),
                     ", found none; next: submit the run again"));
  }
  try {
    const json object = json::parse(*text);
    return LaunchPlan{
        .argv = ToList(object.at("argv")),
        .environment = ToList(object.at("environment")),
        .working_directory = ToBytes(object.at("working_directory")),
        .token = object.at("token").get<std::string>(),
        .attempt = object.value("attempt", uint32_t{1}),  // an older daemon's
        .stderr_begin = object.value("stderr_begin", uint64_t{0}),
    };
  } catch (const std::exception& error) {
    return NoRecord(launch_path(), "what the daemon wrote", error.what());
  }
}

absl::StatusOr<std::optional<ProcessIdentity>> RunFolder::ReadWorker() const {
  TANDEM_ASSIGN_OR_RETURN(const auto text, ReadIfExists(worker_path()));
  if (!text.has_value()) return std::optional<ProcessIdentity>();
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripSuffix(*text, "\n"), ' ');
  ProcessIdentity worker;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &worker.pid) ||
      !absl::SimpleAtoi(parts[1], &worker.start_time)) {
    return NoRecord(worker_path(), "pid, start time and boot id", *text);
  }
  worker.boot_id = std::string(parts[2]);
  return std::optional<ProcessIdentity>(std::move(worker));
}

absl::Status RunFolder::WriteExit(const WorkerExit& exit) const {
  const bool has_number = exit.how == WorkerExit::How::kExited ||
                          exit.how == WorkerExit::How::kSignalled;
  return WriteDurably(
      exit_path(),
      absl::StrCat(kHowWords[static_cast<size_t>(exit.how)], " ",
                   has_number ? std::to_string(exit.number) : exit.reason,
                   "\n"));
}

absl::StatusOr<std::optional<WorkerExit>> RunFolder::ReadExit() const {
  TANDEM_ASSIGN_OR_RETURN(const auto text, ReadIfExists(exit_path()));
  if (!text.has_value()) return std::optional<WorkerExit>();
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::StripSuffix(*text, "\n"), absl::MaxSplits(' ', 1));
  for (size_t i = 0; i < std::size(kHowWords); ++i) {
    if (parts.first != kHowWords[i]) continue;
    WorkerExit exit;
    exit.how = static_cast<WorkerExit::How>(i);
    if (exit.how == WorkerExit::How::kUnknown ||
        exit.how == WorkerExit::How::kNotStarted) {
      exit.reason = Printable(parts.second);  // it may contain a program's name
    } else if (!absl::SimpleAtoi(parts.second, &exit.number)) {
      break;
    }
    return std::optional<WorkerExit>(std::move(exit));
  }
  return NoRecord(exit_path(), "how a worker ended", *text);
}

absl::Status RunFolder::SetRecordsAside(uint32_t attempt) const {
  for (const std::string& record : {worker_path(), exit_path()}) {
    const std::string aside = absl::StrCat(record, ".", attempt);
    if (rename(record.c_str(), aside.c_str()) != 0 && errno != ENOENT) {
      return MakeSystemError("rename", record, errno);
    }
  }
  return SyncFolder(path_);
}

std::string RunFolder::LastOfStderr(uint64_t begin) const {
  constexpr size_t kMostBytes = 2000;
  std::ifstream file(stderr_path(), std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (size <= static_cast<std::streamoff>(begin)) return "";
  const auto wanted = static_cast<std::streamoff>(kMostBytes);
  file.seekg(std::max(static_cast<std::streamoff>(begin), size - wanted));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string printable;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty()) {
      absl::StrAppend(&printable, PrintableHead(line, kMostBytes), "\n");
    }
  }
  return printable;
}

absl::StatusOr<bool> RunFolder::HasProxy() const {
  const UniqueFd file(open(proxy_lock_path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return false;
    return MakeSystemError("open", proxy_lock_path(), errno);
  }
  struct flock range = WholeFile(F_WRLCK);
  if (fcntl(file.get(), F_OFD_GETLK, &range) != 0) {
    return MakeSystemError("fcntl(F_OFD_GETLK)", proxy_lock_path(), errno);
  }
  return range.l_type != F_UNLCK;
}

absl::StatusOr<ProxyLock> ProxyLock::Acquire(const RunFolder& folder) {
  const std::string path = folder.proxy_lock_path();
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  struct flock range = WholeFile(F_WRLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &range) == 0) {
    return ProxyLock(std::move(file));
  }
  if (errno != EAGAIN && errno != EACCES) {
    return MakeSystemError("fcntl(F_OFD_SETLK)", path, errno);
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "proxy lock: expected it free, found that another proxy of this run "
      "holds ",
      path));
}

void ProxyLock::KeepOverExec() const { fcntl(fd_.get(), F_SETFD, 0); }

using std::filesystem::directory_iterator;

FolderSweeper::FolderSweeper(absl::string_view data_dir)
    : runs_(absl::StrCat(data_dir, "/runs")) {
  Sweep();
}

FolderSweeper::~FolderSweeper() {
  // relaxed: nothing else depends on it.
  ending_.store(true, std::memory_order_relaxed);
}

void FolderSweeper::Sweep() {
  // If Add refuses, a waiting sweep will find these folders, too.
  static_cast<void>(sweeps_.Add([this] { RemoveAll(); }));
}

bool FolderSweeper::IsEnding() const {
  return ending_.load(std::memory_order_relaxed);  // relaxed: as at its store
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
    if (IsEnding()) return;
    stuck_.insert(path);
  }
}

bool FolderSweeper::Remove(const std::string& path) {
  if (IsEnding()) return false;
  std::error_code error;
  // Follows no link.
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
