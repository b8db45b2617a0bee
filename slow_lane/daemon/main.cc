// tandem-daemon: runs training jobs and keeps every event that they print.
// `tandem-daemon proxy` is what it starts itself for each run.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "program/program_flags.h"
#include "slow_lane/daemon/daemon.h"
#include "slow_lane/proxy/run_proxy.h"
#include "slow_lane/runs/callers_folder.h"
#include "slow_lane/wire/port.h"
#include "transport/base/printable.h"

ABSL_FLAG(std::string, data_dir, "tandem-data",
          "folder of the table, tandem.db, and of the runs' files; made with "
          "mode 0700 if it isn't there; an existing one must be this user's "
          "and closed to others; one daemon each");
ABSL_FLAG(std::string, listen, "127.0.0.1:50055",
          "HOST:PORT for clients on this machine; port 0 takes a free one; "
          "\"none\": sockets only");
ABSL_FLAG(std::string, socket, "",
          "path of one more Unix socket, beside daemon.sock in --data_dir");
ABSL_FLAG(std::string, allow_users, "",
          "users besides this one whose programs may connect, as names or uids "
          "between commas; each may run programs as this user");
ABSL_FLAG(std::string, token_file, "",
          "file with a token, for TCP clients whose user the kernel does not "
          "name; without it they are refused");
ABSL_FLAG(absl::Duration, heartbeat, absl::Seconds(60),
          "how often a run's proxy says that the worker lives");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(300),
          "without a heartbeat for so long, a run is shown as unreachable");
ABSL_FLAG(absl::Duration, kill_grace, absl::Seconds(5),
          "from SIGTERM to SIGKILL, when a run is cancelled");
ABSL_FLAG(std::optional<int32_t>, gpu_slots, std::nullopt,
          "GPUs to share out; default: the NVIDIA GPUs of this machine");
ABSL_FLAG(std::optional<uint64_t>, keep_runs, std::nullopt,
          "how many ended runs to keep, the newest; older ones are removed "
          "with all their events; default: all");
ABSL_FLAG(bool, full_sync, true,
          "false: faster; a power cut may then take the last events");
ABSL_FLAG(std::string, run_id, "", "of `proxy` only: whose");

namespace tandem::slow_lane {
namespace {

constexpr char kUsage[] =
    "Runs training jobs and keeps every event that they print.\n\n"
    "  tandem-daemon --data_dir ~/runs\n"
    "  tandemctl submit -- python train.py    # in another terminal\n\n"
    "Serves until Ctrl-C or SIGTERM; runs go on, and the next daemon of the "
    "folder takes them up. Exit codes: 0 stopped, 1 failed, 2 wrong command "
    "line.";

constexpr int kWrongCommandLine = 2;
constexpr absl::Duration kLongestTime = absl::Hours(24 * 365);

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::cerr << "tandem-daemon: " << PrintableLines(status.message()) << "\n";
  return absl::IsCancelled(status) ? 0 : 1;  // stopped while it started
}

absl::Status Refuse(const char* flag, const std::string& expected,
                    const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": expected ", expected, ", found ", found, "; see --help"));
}

bool IsListenAddress(absl::string_view address) {
  if (address == "none") return true;
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view port = address.substr(colon + 1);
  // Of IPv6 only [HOST] may have a port behind it.
  return (!absl::StrContains(host, ':') || absl::EndsWith(host, "]")) &&
         (port == "0" || IsPort(port));
}

absl::Status CheckFlags() {
  constexpr int32_t kMostSlots = 1024;
  if (absl::GetFlag(FLAGS_data_dir).empty()) {
    return Refuse("--data_dir", "a folder", "nothing");
  }
  if (const std::string listen = absl::GetFlag(FLAGS_listen);
      !IsListenAddress(listen)) {
    return Refuse("--listen", "HOST:PORT with a PORT from 0 to 65535, or none",
                  absl::StrCat("'", listen, "'"));
  }
  const int32_t slots = absl::GetFlag(FLAGS_gpu_slots).value_or(0);
  if (slots < 0 || slots > kMostSlots) {
    return Refuse("--gpu_slots", absl::StrCat("0 to ", kMostSlots),
                  absl::StrCat(slots));
  }
  const struct {
    const char* name;
    absl::Duration value;
    absl::Duration least;
  } times[] = {
      {"--heartbeat", absl::GetFlag(FLAGS_heartbeat), absl::Milliseconds(1)},
      {"--timeout", absl::GetFlag(FLAGS_timeout), absl::Milliseconds(1)},
      {"--kill_grace", absl::GetFlag(FLAGS_kill_grace), absl::ZeroDuration()}};
  for (const auto& time : times) {
    if (time.value < time.least || time.value > kLongestTime) {
      return Refuse(time.name,
                    absl::StrCat(absl::FormatDuration(time.least), " to ",
                                 absl::FormatDuration(kLongestTime)),
                    absl::FormatDuration(time.value));
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  const ProgramFlags flags("slow_lane/daemon/");
  if (ProgramFlags::WantHelp(words)) {
    std::cout << flags.Help(kUsage);
    return 0;
  }
  const bool is_proxy = !words.empty() && words.front() == "proxy";
  if (const absl::Status set = flags.SetFromWords(
          absl::MakeConstSpan(words).subspan(is_proxy ? 1 : 0));
      !set.ok()) {
    Report(set);
    return kWrongCommandLine;
  }
  if (is_proxy) {
    return Report(RunProxy({.run_id = absl::GetFlag(FLAGS_run_id),
                            .heartbeat = absl::GetFlag(FLAGS_heartbeat),
                            .kill_grace = absl::GetFlag(FLAGS_kill_grace)}));
  }
  if (const absl::Status checked = CheckFlags(); !checked.ok()) {
    Report(checked);
    return kWrongCommandLine;
  }
  if (const absl::Status entered = EnterCallersFolder(); !entered.ok()) {
    return Report(entered);
  }
  const int code =
      Report(RunDaemon({.data_dir = absl::GetFlag(FLAGS_data_dir),
                        .listen = absl::GetFlag(FLAGS_listen),
                        .socket = absl::GetFlag(FLAGS_socket),
                        .allow_users = absl::GetFlag(FLAGS_allow_users),
                        .token_file = absl::GetFlag(FLAGS_token_file),
                        .heartbeat = absl::GetFlag(FLAGS_heartbeat),
                        .timeout = absl::GetFlag(FLAGS_timeout),
                        .kill_grace = absl::GetFlag(FLAGS_kill_grace),
                        .gpu_slots = absl::GetFlag(FLAGS_gpu_slots),
                        .keep_runs = absl::GetFlag(FLAGS_keep_runs),
                        .full_sync = absl::GetFlag(FLAGS_full_sync)}));
  // Everything is closed. Threads of gRPC may be left (server.cc), which must
  // not meet the destructors of static objects.
  std::_Exit(code);
}

}  // namespace
}  // namespace tandem::slow_lane

int main(int argc, char** argv) { return tandem::slow_lane::Main(argc, argv); }
