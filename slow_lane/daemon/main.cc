// tandem-daemon: runs training jobs and stores all events that they print. It
// starts `tandem-daemon proxy` for each run.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/end_with_parent.h"
#include "base/os/stop_signals.h"
#include "base/os/unique_fd.h"
#include "base/printable.h"
#include "program/listening_sockets.h"
#include "program/program_flags.h"
#include "program/tls/tls_flags.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/data_folder.h"
#include "slow_lane/daemon/frame_relay.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/server.h"
#include "slow_lane/daemon/trainer_service.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/proxy/run_proxy.h"
#include "slow_lane/runs/limits.h"
#include "slow_lane/runs/worker_launch.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"

// slow_lane/docs/slow_lane.md has these texts as --help prints them.
ABSL_FLAG(std::string, data_dir, "tandem-data",
          "folder of the database, tandem.db, and of the runs' files. Created "
          "with mode 0700 if missing. Must belong to this user. An empty "
          "folder or a daemon's gets mode 0700. One daemon per folder");
ABSL_FLAG(std::string, listen,
          absl::StrCat("127.0.0.1:", +tandem::slow_lane::v1::DEFAULT_PORT),
          "HOST:PORT for clients of this machine; port 0: a free port; none: "
          "no port, only Unix sockets");
ABSL_FLAG(bool, allow_remote, false,
          "true: --listen may be an address that other machines reach; needs "
          "--tls_cert, --tls_key and --tls_client_ca");
ABSL_FLAG(std::string, tls_cert, "",
          "PEM file with the daemon's certificate: the port then speaks TLS");
ABSL_FLAG(std::string, tls_key, "",
          "PEM file with the certificate's key, without passphrase");
ABSL_FLAG(
    std::string, tls_client_ca, "",
    "PEM file with the authorities that signed the clients' certificates");
ABSL_FLAG(
    std::string, socket, "",
    "path of a second Unix socket, in addition to daemon.sock in --data_dir");
ABSL_FLAG(std::string, allow_users, "",
          "other users whose programs may connect: names or uids, separated by "
          "commas. Each of them may run programs as this user");
ABSL_FLAG(std::string, token_file, "",
          "file with a token, for TCP clients whose user the kernel does not "
          "report; without a token the daemon refuses these clients");
ABSL_FLAG(absl::Duration, heartbeat, absl::Seconds(60),
          "time between two heartbeats of a run's proxy");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(300),
          "time without a heartbeat after which a run is shown as unreachable");
ABSL_FLAG(
    absl::Duration, fault_after, absl::Seconds(300),
    "time without a sign of life after which the daemon ends a worker that has "
    "sent heartbeats; the run is then FAULT. Pauses do not count. 0: never");
ABSL_FLAG(absl::Duration, kill_grace, absl::Seconds(5),
          "time between SIGTERM and SIGKILL when a run is cancelled");
ABSL_FLAG(std::optional<int32_t>, gpu_slots, std::nullopt,
          "number of GPUs to assign; default: the NVIDIA GPUs of this machine");
ABSL_FLAG(std::optional<uint32_t>, cpus, std::nullopt,
          "number of processor cores that runs may reserve by resources.cpus; "
          "default: those that this process may use");
ABSL_FLAG(bool, no_queue, false,
          "true: runs reserve no cores and no memory, and wait only for GPUs");
ABSL_FLAG(bool, strict_resources, false,
          "true: refuse a run that asks for more cores or memory than there "
          "are; false: it runs alone");
ABSL_FLAG(std::optional<uint64_t>, keep_runs, std::nullopt,
          "number of ended runs to keep, newest first; the daemon deletes "
          "older runs with all their events; default: all");
ABSL_FLAG(bool, full_sync, true,
          "false: faster; a power failure may lose the last events");
ABSL_FLAG(std::string, run_id, "", "(proxy) id of the run");
ABSL_FLAG(std::string, public_address, "",
          "(proxy) address of the daemon for other machines");
ABSL_FLAG(bool, remote, false,
          "(proxy) true: the daemon, whose address is in TANDEM_DAEMON, is on "
          "another machine");
ABSL_FLAG(int32_t, parent, 0,
          "(proxy) pid of a process with which the proxy ends its run");

namespace tandem::slow_lane {
namespace {

constexpr char kUsage[] =
    "Runs training jobs and stores every event that they print.\n\n"
    "  tandem-daemon --data_dir ~/runs\n"
    "  tandemctl submit -- python train.py    # in another terminal\n\n"
    "Stops at Ctrl-C or SIGTERM. Runs continue; a later daemon with the same "
    "--data_dir takes them over.\n\n"
    "Exit codes: 0 stopped, 1 failed, 2 wrong command line.";

constexpr int kWrongCommandLine = 2;
constexpr absl::Duration kLongestTime = absl::Hours(24 * 365);

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::cerr << "tandem-daemon: " << PrintableLines(status.message()) << "\n";
  return absl::IsCancelled(status) ? 0 : 1;  // cancelled: stopped at the start
}

absl::Status Refuse(const char* flag, const std::string& expected,
                    const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": expected ", expected, ", found ", found, "; see --help"));
}

// `bazel run` starts a program in its runfiles; a variable has the caller's
// folder. Child programs inherit the variable but run in other folders: for
// them this function does nothing.
absl::Status EnterCallersFolder() {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder == nullptr) return absl::OkStatus();
  std::error_code error;
  const std::string here = std::filesystem::current_path(error);
  if (error || !absl::StrContains(here, ".runfiles/")) return absl::OkStatus();
  if (chdir(folder) != 0) return MakeSystemError("chdir", folder, errno);
  return absl::OkStatus();
}

TlsFiles FilesOfFlags() {
  return {.certificate = absl::GetFlag(FLAGS_tls_cert),
          .key = absl::GetFlag(FLAGS_tls_key),
          .authorities = absl::GetFlag(FLAGS_tls_client_ca)};
}

absl::Status CheckFlags() {
  constexpr int32_t kMostSlots = 1024;
  TANDEM_RETURN_IF_ERROR(
      CheckTlsFlags({.files = FilesOfFlags(),
                     .knows_clients = true,
                     .listens = absl::GetFlag(FLAGS_listen) != "none",
                     .allow_remote = absl::GetFlag(FLAGS_allow_remote)}));
  if (!absl::GetFlag(FLAGS_tls_cert).empty() &&
      !absl::GetFlag(FLAGS_token_file).empty()) {
    return Refuse("--token_file", "no --tls_cert beside it", "both");
  }
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
  if (absl::GetFlag(FLAGS_cpus) == 0u) {
    return Refuse("--cpus", "at least 1", "0");
  }
  const struct {
    const char* name;
    absl::Duration value;
    absl::Duration least;
  } times[] = {
      {"--heartbeat", absl::GetFlag(FLAGS_heartbeat), absl::Milliseconds(1)},
      {"--timeout", absl::GetFlag(FLAGS_timeout), absl::Milliseconds(1)},
      {"--fault_after", absl::GetFlag(FLAGS_fault_after), absl::ZeroDuration()},
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

// Returns the address at which other machines reach `address`, the daemon's:
// with this machine's name, if it listens at every address.
std::string PublicAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const absl::string_view host =
      absl::string_view(address).substr(0, std::min(colon, address.size()));
  if (host != "0.0.0.0" && host != "[::]" && host != "*") return address;
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return address;
  return absl::StrCat(name.data(), address.substr(colon));
}

constexpr char kTable[] = "tandem.db";
// The daemon frees this file's bytes before it opens the table: SQLite then
// makes its shared-memory file of 32 KiB again, also on a full disk, which a
// worker fills as soon as it has room.
constexpr char kReserve[] = "reserve";
constexpr off_t kReserveBytes = 256 * 1024;
constexpr std::chrono::milliseconds kStopLimit(200);

// Returns the files that a daemon makes in its folder before it serves.
std::vector<std::string> MadeFiles() {
  return {kTable,
          absl::StrCat(kTable, "-wal"),
          absl::StrCat(kTable, "-shm"),
          kReserve,
          "runs",
          kSocketFile};
}

// Without room there is none for the next start.
void MakeReserve() {
  const UniqueFd fd(open(kReserve, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0 || posix_fallocate(fd.get(), 0, kReserveBytes) != 0) {
    unlink(kReserve);
  }
}

int32_t CountGpus() {
  int32_t gpus = 0;
  DIR* const dev = opendir("/dev");
  if (dev == nullptr) return 0;
  while (const dirent* entry = readdir(dev)) {
    absl::string_view name = entry->d_name;
    int32_t number = 0;
    if (absl::ConsumePrefix(&name, "nvidia") &&
        absl::SimpleAtoi(name, &number)) {
      ++gpus;
    }
  }
  closedir(dev);
  return gpus;
}

// Returns what runs may reserve; nullopt: they reserve nothing.
std::optional<MachineShare> MachineOfFlags() {
  if (absl::GetFlag(FLAGS_no_queue)) return std::nullopt;
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  const auto cores = static_cast<uint32_t>(std::max(CPU_COUNT(&usable), 1));
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return MachineShare{.cpus = absl::GetFlag(FLAGS_cpus).value_or(cores),
                      .memory_mb = pages * page_bytes >> 20};
}

// Serves until SIGINT or SIGTERM. Call it before any thread is made. Prints one
// line to stdout when it serves. Runs continue after it stops. Changes the
// working directory to the data folder. If the daemon cannot serve, it removes
// the folder that it made. kAlreadyExists: another daemon has the folder.
// kUnavailable: the address or socket is in use.
absl::Status RunDaemon() {
  // sigwait and the supervisor's signalfd receive them. All threads inherit the
  // mask.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : StopSignals()) sigaddset(&signals, signal);
  sigset_t blocked = signals;
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f: a write fails instead

  const std::string start_dir = std::filesystem::current_path();
  std::string extra_socket = absl::GetFlag(FLAGS_socket);
  if (!extra_socket.empty()) {
    extra_socket = std::filesystem::absolute(extra_socket);
  }
  TANDEM_ASSIGN_OR_RETURN(
      Entrance entrance,
      Entrance::Read({.listen = absl::GetFlag(FLAGS_listen),
                      .socket = extra_socket,
                      .allow_users = absl::GetFlag(FLAGS_allow_users),
                      .token_file = absl::GetFlag(FLAGS_token_file),
                      .tls = FilesOfFlags(),
                      .allow_remote = absl::GetFlag(FLAGS_allow_remote)}));
  TANDEM_ASSIGN_OR_RETURN(DataFolder folder,
                          DataFolder::Enter(std::filesystem::absolute(
                                                absl::GetFlag(FLAGS_data_dir)),
                                            MadeFiles()));
  // Before the folder is removed: a socket in it would prevent that.
  const auto close = absl::MakeCleanup([&entrance] { entrance.Close(); });
  const std::string& data_dir = folder.path();
  TANDEM_RETURN_IF_ERROR(entrance.Listen());
  TANDEM_RETURN_IF_ERROR(BecomeSubreaper());

  unlink(kReserve);
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<EventStore> store,
      EventStore::Open(kTable, {.full_sync = absl::GetFlag(FLAGS_full_sync)}));
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<EventReader> reader,
                          EventReader::Open(kTable));
  MakeReserve();
  WatchHub hub(std::move(reader));

  const std::string tcp = entrance.address();
  const std::string socket = absl::StrCat(
      "unix:", extra_socket.empty() ? absl::StrCat(data_dir, "/", kSocketFile)
                                    : extra_socket);
  // Programs of this machine have no certificate.
  const std::string address = tcp.empty() || entrance.has_tls() ? socket : tcp;
  RunSupervisor::Options run_options = {
      .data_dir = data_dir,
      .start_dir = start_dir,
      .public_address = tcp.empty() ? socket : PublicAddress(tcp),
      .heartbeat = absl::GetFlag(FLAGS_heartbeat),
      .timeout = absl::GetFlag(FLAGS_timeout),
      .fault_after = absl::GetFlag(FLAGS_fault_after),
      .kill_grace = absl::GetFlag(FLAGS_kill_grace),
      .gpu_slots = absl::GetFlag(FLAGS_gpu_slots).value_or(CountGpus()),
      .machine = MachineOfFlags(),
      .strict_resources = absl::GetFlag(FLAGS_strict_resources),
      .keep_runs = absl::GetFlag(FLAGS_keep_runs)};
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<RunSupervisor> runs,
                          RunSupervisor::Start(run_options, store.get(), &hub));
  FrameRelay frames(runs.get());
  FileRelay files(data_dir, runs.get());
  // At each return: the thread of each of the three calls the other two, so all
  // threads end before any of the three is destroyed.
  const auto end_threads = absl::MakeCleanup([&] {
    runs->Stop();
    hub.Stop();
    store.reset();
  });
  store->SetListener([&hub, &runs](const std::string& run_id,
                                   const Numbers& last,
                                   uint64_t printed_steps) {
    hub.Committed(run_id, last);
    runs->Committed(run_id, last, printed_steps);
  });

  gymgui::trainer::HealthCheckResponse health;
  health.set_pid(static_cast<uint64_t>(getpid()));
  health.mutable_started_at()->set_seconds(
      static_cast<int64_t>(UnixMillis() / 1000));
  health.set_listen_address(tcp.empty() ? socket : tcp);
  const auto trainer =
      MakeTrainerService(runs.get(), &hub, store.get(), health);
  const auto slow_lane =
      MakeSlowLaneService(runs.get(), &hub, store.get(), &frames, &files);
  const std::string addresses =
      absl::StrCat(tcp, entrance.has_tls() ? " (TLS)" : "",
                   tcp.empty() ? "" : " and ", socket);
  TANDEM_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Server::Start(std::move(entrance), {trainer.get(), slow_lane.get()},
                    data_dir));
  folder.Keep();
  runs->Begin(address);
  std::cout << "tandem-daemon: listening on " << addresses << ", data in "
            << Printable(data_dir) << std::endl;

  int signal = 0;
  sigwait(&signals, &signal);
  std::cerr << "tandem-daemon: " << strsignal(signal) << ", stopping\n";
  // gRPC can end only after all watchers have ended, queued events are
  // committed, and all calls are answered.
  hub.EndAll();
  store->Close();
  runs->AnswerAll();
  server->Shutdown(kStopLimit);
  const size_t going_on = runs->Stop();
  if (going_on > 0) {
    std::cerr << "tandem-daemon: " << going_on
              << (going_on == 1 ? " run goes on; its" : " runs go on; their")
              << " events are kept, and the next daemon of this folder takes "
                 "them up\n";
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
    if (const pid_t parent = absl::GetFlag(FLAGS_parent); parent != 0) {
      EndWithParent(SIGTERM, parent);
    }
    return Report(
        RunProxy({.run_id = absl::GetFlag(FLAGS_run_id),
                  .heartbeat = absl::GetFlag(FLAGS_heartbeat),
                  .kill_grace = absl::GetFlag(FLAGS_kill_grace),
                  .public_address = absl::GetFlag(FLAGS_public_address),
                  .is_remote = absl::GetFlag(FLAGS_remote)}));
  }
  if (const absl::Status checked = CheckFlags(); !checked.ok()) {
    Report(checked);
    return kWrongCommandLine;
  }
  if (const absl::Status entered = EnterCallersFolder(); !entered.ok()) {
    return Report(entered);
  }
  const int code = Report(RunDaemon());
  // Everything is closed. Threads of gRPC may still run (server.cc). _Exit runs
  // no destructors of static objects, which they might use.
  std::_Exit(code);
}

}  // namespace
}  // namespace tandem::slow_lane

int main(int argc, char** argv) { return tandem::slow_lane::Main(argc, argv); }
