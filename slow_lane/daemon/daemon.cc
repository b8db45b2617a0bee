#include "slow_lane/daemon/daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/trainer_service.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/worker_launch.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/wire/limits.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {
namespace {

constexpr char kTable[] = "tandem.db";
constexpr char kPid[] = "daemon.pid";
constexpr std::chrono::milliseconds kStopLimit(200);
constexpr double kLockSecs = 1;
constexpr int kLockPollMs = 20;

// That this process is the folder's daemon, as long as it lives: the lock is
// the folder's own, which nobody removes by chance as they would a file. A file
// in it holds the pid, for people.
absl::StatusOr<UniqueFd> LockFolder(const std::string& data_dir) {
  UniqueFd folder(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return MakeSystemError("open", data_dir, errno);
  // A daemon that was killed while it started a proxy lives on in that one, as
  // far as its lock goes, until exec: a moment.
  const Deadline deadline = Deadline::After(kLockSecs);
  bool locked = flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
  while (!locked && errno == EWOULDBLOCK &&
         !deadline.PassedAt(MonotonicNanos())) {
    poll(nullptr, 0, kLockPollMs);
    locked = flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
  }
  if (!locked && errno != EWOULDBLOCK) {
    return MakeSystemError("flock", data_dir, errno);
  }
  const UniqueFd file(open(kPid, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!locked) {
    char pid[32] = {};
    const bool known = pread(file.get(), pid, sizeof(pid) - 1, 0) > 0;
    return absl::AlreadyExistsError(absl::StrCat(
        "expected a data folder without a daemon, found one at work",
        known ? absl::StrCat(" (pid ", absl::StripAsciiWhitespace(pid), ")")
              : "",
        "; stop it, or give --data_dir another folder; the folder is ",
        data_dir));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (!file.valid() || ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), pid.data(), pid.size(), 0) < 0) {
    return MakeSystemError("write", absl::StrCat(data_dir, "/", kPid), errno);
  }
  return folder;
}

absl::Status EnterFolder(const std::string& data_dir) {
  std::error_code error;
  std::filesystem::create_directories(data_dir, error);
  if (error) return MakeSystemError("mkdir", data_dir, error.value());
  if (chdir(data_dir.c_str()) != 0) {
    return MakeSystemError("chdir", data_dir, errno);
  }
  // Events and environments of runs are the user's own.
  if (chmod(".", 0700) != 0) return MakeSystemError("chmod", data_dir, errno);
  return absl::OkStatus();
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

// Whether somebody listens there. For the folder's own socket the lock would
// do; another one may be that of a daemon of another folder. The path is as
// short as it must be.
absl::StatusOr<bool> HasListener(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const UniqueFd client(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!client.valid()) return MakeSystemError("socket", path, errno);
  // EAGAIN: so many wait for it already.
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0 ||
      errno == EAGAIN) {
    return true;
  }
  if (errno == ECONNREFUSED || errno == ENOENT) return false;
  return MakeSystemError("connect", path, errno);
}

// A socket that a dead daemon left behind.
absl::Status RemoveStaleSocket(const std::string& path) {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat("--socket: expected a path of at most ", kLongest,
                     " bytes, found ", path.size(), ": ", path));
  }
  const std::string folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK) != 0) {
    return MakeSystemError("--socket: access", folder, errno);
  }
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) return absl::OkStatus();
  if (!S_ISSOCK(file.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "--socket: expected a path that is free or a socket, found another "
        "file at ",
        path));
  }
  const absl::StatusOr<bool> taken = HasListener(path);
  if (!taken.ok()) return taken.status();
  if (*taken) {
    return absl::UnavailableError(absl::StrCat(
        "--socket: expected a path that is free, found one at which another "
        "program listens; is it another daemon's? Give another path, or stop "
        "that one: ",
        path));
  }
  if (unlink(path.c_str()) != 0) return MakeSystemError("unlink", path, errno);
  return absl::OkStatus();
}

// What the system said, out of a line of gRPC's log, which is for who knows its
// insides: os_error:"Address already in use", or behind UNKNOWN:.
std::string SystemsWord(absl::string_view line) {
  constexpr absl::string_view kSystems = "os_error:\"";
  if (const size_t at = line.find(kSystems); at != absl::string_view::npos) {
    line.remove_prefix(at + kSystems.size());
    return std::string(line.substr(0, line.find('"')));
  }
  absl::ConsumePrefix(&line, "UNKNOWN:");
  return std::string(line.substr(0, line.find(" {")));
}

struct Server {
  std::unique_ptr<grpc::Server> grpc;
  std::string address;  // where TCP clients find it; empty for none
};

absl::StatusOr<Server> Serve(const DaemonOptions& options,
                             const std::vector<grpc::Service*>& services) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Else it asks no more after two pings of a stream on which nothing comes.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients may ping as often as this, with and without calls.
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Two daemons on one port would share its clients by chance.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int port = 0;
  const bool tcp = options.listen != "none";
  if (tcp) {
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(),
                             &port);
  }
  builder.AddListeningPort(absl::StrCat("unix:", kSocketFile),
                           grpc::InsecureServerCredentials());
  if (!options.socket.empty()) {
    builder.AddListeningPort(absl::StrCat("unix:", options.socket),
                             grpc::InsecureServerCredentials());
  }
  for (grpc::Service* const service : services) {
    builder.RegisterService(service);
  }
  Server server;
  static std::string why;
  gpr_set_log_function(
      [](gpr_log_func_args* line) { why = SystemsWord(line->message); });
  server.grpc = builder.BuildAndStart();
  gpr_set_log_function(nullptr);  // its own again
  if (server.grpc == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "--listen, --socket: expected addresses that are free and this "
        "machine's own, found that '",
        options.listen, options.socket.empty() ? "" : "' or '", options.socket,
        "' is not (", why,
        "); is another daemon running? --listen=127.0.0.1:0 takes a free "
        "port"));
  }
  // By name, too: without one the health service knows the server only.
  for (const char* const service :
       {gymgui::trainer::TrainerService::service_full_name(),
        v1::SlowLane::service_full_name()}) {
    server.grpc->GetHealthCheckService()->SetServingStatus(service, true);
  }
  if (tcp) {
    server.address = absl::StrCat(
        options.listen.substr(0, options.listen.rfind(':')), ":", port);
  }
  return server;
}

// Tells people of a migration, which may take minutes, and ends it when the
// daemon is told to stop.
absl::Status WatchMigration(int64_t rows, const sigset_t& stop_signals) {
  const timespec now = {};
  if (const int signal = sigtimedwait(&stop_signals, nullptr, &now);
      signal > 0) {
    return absl::CancelledError(absl::StrCat(
        strsignal(signal), ", stopping: ", kTable,
        " keeps its schema version; the next start moves its rows again"));
  }
  std::cerr << "tandem-daemon: " << kTable
            << " has an older schema version, moving its rows: " << rows
            << " so far\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDaemon(const DaemonOptions& options) {
  // Taken by sigwait and by the supervisor's signalfd; inherited by all
  // threads.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  sigset_t blocked = signals;
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  DaemonOptions resolved = options;
  const std::string start_dir = std::filesystem::current_path();
  resolved.data_dir = std::filesystem::absolute(options.data_dir);
  if (!options.socket.empty()) {
    resolved.socket = std::filesystem::absolute(options.socket);
  }
  if (absl::Status entered = EnterFolder(resolved.data_dir); !entered.ok()) {
    return entered;
  }
  const absl::StatusOr<UniqueFd> lock = LockFolder(resolved.data_dir);
  if (!lock.ok()) return lock.status();
  for (const std::string& socket :
       {std::string(kSocketFile), resolved.socket}) {
    if (socket.empty()) continue;
    if (absl::Status s = RemoveStaleSocket(socket); !s.ok()) return s;
  }
  if (absl::Status subreaper = BecomeSubreaper(); !subreaper.ok()) {
    return subreaper;
  }

  absl::StatusOr<std::unique_ptr<EventStore>> store =
      EventStore::Open(kTable, {.full_sync = resolved.full_sync,
                                .migration_watch = [&signals](int64_t rows) {
                                  return WatchMigration(rows, signals);
                                }});
  if (!store.ok()) return store.status();
  absl::StatusOr<std::unique_ptr<EventReader>> reader =
      EventReader::Open(kTable);
  if (!reader.ok()) return reader.status();
  WatchHub hub(*std::move(reader));

  RunSupervisor::Options run_options = {
      .data_dir = resolved.data_dir,
      .start_dir = start_dir,
      .heartbeat = resolved.heartbeat,
      .timeout = resolved.timeout,
      .kill_grace = resolved.kill_grace,
      .gpu_slots = resolved.gpu_slots.value_or(CountGpus()),
      .keep_runs = resolved.keep_runs};
  absl::StatusOr<std::unique_ptr<RunSupervisor>> runs =
      RunSupervisor::Start(run_options, store->get(), &hub);
  if (!runs.ok()) return runs.status();
  // However this ends: the thread of each calls the other two, so all threads
  // end before any of the three goes.
  const auto end_threads = absl::MakeCleanup([&] {
    (*runs)->Stop();
    hub.Stop();
    store->reset();
  });
  (*store)->SetListener([&hub, &runs](const std::string& run_id,
                                      const Numbers& last,
                                      uint64_t printed_steps) {
    hub.Committed(run_id, last);
    (*runs)->Committed(run_id, last, printed_steps);
  });

  gymgui::trainer::HealthCheckResponse health;
  health.set_pid(static_cast<uint64_t>(getpid()));
  health.mutable_started_at()->set_seconds(
      static_cast<int64_t>(UnixMillis() / 1000));
  TrainerService trainer(runs->get(), &hub, store->get(), health);
  SlowLaneService slow_lane(runs->get(), &hub, store->get());
  absl::StatusOr<Server> server = Serve(resolved, {&trainer, &slow_lane});
  if (!server.ok()) return server.status();
  const std::string socket = absl::StrCat(
      "unix:", resolved.socket.empty()
                   ? absl::StrCat(resolved.data_dir, "/", kSocketFile)
                   : resolved.socket);
  const std::string& address =
      server->address.empty() ? socket : server->address;
  trainer.SetListenAddress(address);
  (*runs)->Begin(address);
  std::cout << "tandem-daemon: listening on "
            << (server->address.empty()
                    ? ""
                    : absl::StrCat(server->address, " and "))
            << socket << ", data in " << resolved.data_dir << std::endl;

  int signal = 0;
  sigwait(&signals, &signal);
  std::cerr << "tandem-daemon: " << strsignal(signal) << ", stopping\n";
  // Watchers are told, what is queued is committed, and every call is answered:
  // only then can gRPC end.
  hub.EndAll();
  (*store)->Close();
  (*runs)->AnswerAll();
  server->grpc->Shutdown(std::chrono::system_clock::now() + kStopLimit);
  const size_t going_on = (*runs)->Stop();
  if (going_on > 0) {
    std::cerr << "tandem-daemon: " << going_on
              << (going_on == 1 ? " run goes on; its" : " runs go on; their")
              << " events are kept, and the next daemon of this folder takes "
                 "them up\n";
  }
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane
