#include "slow_lane/runs/process_identity.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "slow_lane/runs/durable_file.h"

namespace tandem::slow_lane {
namespace {

absl::Status Gone(pid_t pid) {
  return absl::NotFoundError(absl::StrCat(
      "process ", pid, ": expected one that lives, found that it is gone"));
}

// Takes the next field. Returns nullopt if it is not a number.
template <typename Number>
std::optional<Number> TakeNumber(absl::string_view* text) {
  while (!text->empty() && text->front() == ' ') text->remove_prefix(1);
  Number number = 0;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

}  // namespace

v1::ProcessIdentity ToProto(const ProcessIdentity& identity) {
  v1::ProcessIdentity proto;
  proto.set_pid(identity.pid);
  proto.set_start_time(identity.start_time);
  proto.set_boot_id(identity.boot_id);
  return proto;
}

ProcessIdentity FromProto(const v1::ProcessIdentity& proto) {
  return {.pid = proto.pid(),
          .start_time = proto.start_time(),
          .boot_id = proto.boot_id()};
}

std::optional<ProcessStat> ParseProcessStat(absl::string_view text) {
  // The name is between the first and the last parenthesis. It may contain
  // parentheses, blanks and newlines.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) {
    return std::nullopt;
  }
  ProcessStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  absl::string_view before = text.substr(0, open);
  const auto pid = TakeNumber<pid_t>(&before);
  absl::string_view rest = text.substr(close + 1);
  if (!pid.has_value() || rest.size() < 3 || rest[0] != ' ') {
    return std::nullopt;
  }
  stat.pid = *pid;
  stat.state = rest[1];
  rest.remove_prefix(2);
  // Fields 4 to 22, numbered as in proc(5); some may be negative.
  std::array<int64_t, 23> fields = {};
  for (size_t i = 4; i <= 22; ++i) {
    const auto field = TakeNumber<int64_t>(&rest);
    if (!field.has_value()) return std::nullopt;
    fields[i] = *field;
  }
  stat.parent = static_cast<pid_t>(fields[4]);
  stat.group = static_cast<pid_t>(fields[5]);
  stat.session = static_cast<pid_t>(fields[6]);
  stat.threads = fields[20];
  stat.start_time = static_cast<uint64_t>(fields[22]);
  return stat;
}

absl::StatusOr<ProcessStat> ReadProcessStat(pid_t pid, std::string* buffer) {
  const std::string path = absl::StrCat("/proc/", pid, "/stat");
  buffer->clear();
  const int error = ReadFile(path, buffer);
  if (error == ENOENT || error == ESRCH) return Gone(pid);
  if (error != 0) return MakeSystemError("read", path, error);
  const std::optional<ProcessStat> stat = ParseProcessStat(*buffer);
  if (!stat.has_value()) {
    return absl::DataLossError(
        absl::StrCat(path, ": expected the fields of proc(5), found '",
                     absl::StripAsciiWhitespace(*buffer), "'"));
  }
  return *stat;
}

const std::string& BootId() {
  static const std::string* const boot_id = [] {
    auto* text = new std::string;
    if (ReadFile("/proc/sys/kernel/random/boot_id", text) != 0) {
      text->clear();
    }
    absl::StripAsciiWhitespace(text);
    return text;
  }();
  return *boot_id;
}

absl::StatusOr<ProcessIdentity> IdentityOf(pid_t pid) {
  std::string buffer;
  TANDEM_ASSIGN_OR_RETURN(const ProcessStat stat,
                          ReadProcessStat(pid, &buffer));
  return ProcessIdentity{
      .pid = pid, .start_time = stat.start_time, .boot_id = BootId()};
}

bool IsAlive(const ProcessIdentity& identity) {
  if (identity.pid <= 0 || identity.boot_id != BootId()) return false;
  std::string buffer;
  const absl::StatusOr<ProcessStat> stat =
      ReadProcessStat(identity.pid, &buffer);
  return stat.ok() && stat->start_time == identity.start_time &&
         stat->IsAlive();
}

double SecondsSinceStart(const ProcessIdentity& process) {
  if (process.boot_id != BootId()) return 0;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9 -
         static_cast<double>(process.start_time) /
             static_cast<double>(sysconf(_SC_CLK_TCK));
}

absl::StatusOr<UniqueFd> OpenProcess(const ProcessIdentity& identity) {
  if (identity.pid <= 0) return Gone(identity.pid);
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, identity.pid, 0)));
  if (!process.valid()) {
    // EINVAL: the number is now a thread's.
    if (errno == ESRCH || errno == EINVAL) return Gone(identity.pid);
    return MakeSystemError("pidfd_open", absl::StrCat("process ", identity.pid),
                           errno);
  }
  // The descriptor refers to that process or to a later one with its pid. If
  // the pid still has the same identity, the descriptor is the right one.
  TANDEM_ASSIGN_OR_RETURN(const ProcessIdentity now, IdentityOf(identity.pid));
  if (now == identity) return process;
  return absl::NotFoundError(absl::StrCat(
      "process ", identity.pid, ": expected the one that started at ",
      identity.start_time, " of boot ", identity.boot_id, ", found one of ",
      now.start_time, " of boot ", now.boot_id, ": the number was reused"));
}

absl::Status SignalProcess(int pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) {
    return absl::OkStatus();
  }
  const std::string what = absl::StrCat("signal ", signal, " to the process");
  if (errno == ESRCH) {
    return absl::NotFoundError(absl::StrCat(what, ": it is gone"));
  }
  return MakeSystemError("pidfd_send_signal", what, errno);
}

}  // namespace tandem::slow_lane
