#include "slow_lane/ctl/logs_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "program/standard_output.h"
#include "slow_lane/ctl/text_table.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_state.h"
#include "transport/base/error.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::Duration kBetweenReads = absl::Milliseconds(200);
constexpr int kReadsPerQuestion = 5;  // once a second
constexpr absl::Duration kPatience = absl::Seconds(10);

absl::Status ShowMalformed(Connection* daemon, const LogsCommand& command) {
  v1::StreamEventsRequest request = NoEventsOf(command.run_id);
  request.set_since_malformed(0);
  request.set_follow(command.follow);
  absl::Status written;
  const absl::Status streamed = daemon->StreamEvents(
      request, command.follow ? absl::InfiniteDuration() : kPatience,
      [&written](const v1::EventBatch& batch) {
        std::string text;
        for (const v1::MalformedLine& line : batch.malformed()) {
          absl::StrAppend(&text, line.seq_id(), ": at byte ", line.offset(),
                          ", ", line.length(),
                          " bytes: ", OneLine(line.reason(), 1'000), ": ",
                          OneLine(line.head(), 1'000), "\n");
        }
        written = Print(text);
        return written.ok();
      });
  return streamed.ok() ? written : streamed;
}

// From where `file` is to its end.
absl::Status CopyRest(const UniqueFd& file, const std::string& path) {
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t bytes = read(file.get(), block.data(), block.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return MakeSystemError("read", path, errno);
    if (bytes == 0) return absl::OkStatus();
    if (absl::Status s = Print({block.data(), static_cast<size_t>(bytes)});
        !s.ok()) {
      return s;
    }
  }
}

// Whether more may come. A daemon that is away says nothing; a run that is gone
// has ended.
bool GoesOn(Connection* daemon, const std::string& run_id) {
  const auto described = daemon->DescribeRun(run_id);
  if (!described.ok()) return !absl::IsNotFound(described.status());
  return !IsFinal(described->runs(0).record().status());
}

}  // namespace

absl::Status ShowLogs(Connection* daemon, const LogsCommand& command) {
  const auto described = daemon->DescribeRun(command.run_id);
  if (!described.ok()) return described.status();
  if (command.what == LogsCommand::What::kMalformed) {
    return ShowMalformed(daemon, command);
  }
  const v1::RunDescription& run = described->runs(0);
  const RunFolder folder(run.folder());
  const std::string path = command.what == LogsCommand::What::kStderr
                               ? folder.stderr_path()
                               : folder.stdout_path();
  bool more = command.follow && !IsFinal(run.record().status());
  UniqueFd file;
  for (int reads = 1;; ++reads) {
    if (!file.valid()) {
      file = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    if (file.valid()) {
      if (absl::Status s = CopyRest(file, path); !s.ok()) return s;
    } else if (errno != ENOENT) {
      return MakeSystemError("open", path, errno);
    } else if (!more) {
      return absl::NotFoundError(absl::StrCat(
          "expected what the worker wrote, found no file: either the run (",
          NameOf(run.record().status()),
          ") has not started its worker, or its config has "
          "artifacts.persist_logs false, or the daemon runs on another "
          "machine; the file is ",
          path));
    }
    if (!more) return absl::OkStatus();
    absl::SleepFor(kBetweenReads);
    if (reads % kReadsPerQuestion == 0) more = GoesOn(daemon, command.run_id);
  }
}

}  // namespace tandem::slow_lane
