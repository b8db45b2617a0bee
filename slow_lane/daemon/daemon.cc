#include "slow_lane/daemon/daemon.h"

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "slow_lane/daemon/data_folder.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/daemon/server.h"
#include "slow_lane/daemon/trainer_service.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/worker_launch.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/wire/limits.h"
#include "transport/base/clock.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

constexpr char kTable[] = "tandem.db";
constexpr std::chrono::milliseconds kStopLimit(200);

// What a daemon makes in its folder before it serves.
std::vector<std::string> MadeFiles() {
  return {kTable, absl::StrCat(kTable, "-wal"), absl::StrCat(kTable, "-shm"),
          "runs", kSocketFile};
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

// Prints the progress of a migration, which may take minutes, each second, and
// cancels it on a stop signal.
absl::Status WatchMigration(int64_t rows, const sigset_t& stop_signals,
                            Deadline* next_line) {
  const timespec now = {};
  if (const int signal = sigtimedwait(&stop_signals, nullptr, &now);
      signal > 0) {
    return absl::CancelledError(absl::StrCat(
        strsignal(signal), ", stopping: ", kTable,
        " keeps its schema version; the next start moves its rows again"));
  }
  if (next_line->PassedAt(MonotonicNanos())) {
    *next_line = Deadline::After(1);
    std::cerr << "tandem-daemon: " << kTable
              << " has an older schema version, moving its rows: " << rows
              << " so far\n";
  }
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
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f: a write fails instead

  DaemonOptions resolved = options;
  const std::string start_dir = std::filesystem::current_path();
  resolved.data_dir = std::filesystem::absolute(options.data_dir);
  if (!options.socket.empty()) {
    resolved.socket = std::filesystem::absolute(options.socket);
  }
  absl::StatusOr<Entrance> entrance =
      Entrance::Read({.listen = resolved.listen,
                      .socket = resolved.socket,
                      .allow_users = resolved.allow_users,
                      .token_file = resolved.token_file});
  if (!entrance.ok()) return entrance.status();
  absl::StatusOr<DataFolder> folder =
      DataFolder::Enter(resolved.data_dir, MadeFiles());
  if (!folder.ok()) return folder.status();
  // Before the folder goes: a socket in it would keep it.
  const auto close = absl::MakeCleanup([&entrance] { entrance->Close(); });
  resolved.data_dir = folder->path();
  if (absl::Status s = entrance->Listen(); !s.ok()) return s;
  if (absl::Status subreaper = BecomeSubreaper(); !subreaper.ok()) {
    return subreaper;
  }

  absl::StatusOr<std::unique_ptr<EventStore>> store = EventStore::Open(
      kTable, {.full_sync = resolved.full_sync,
               .migration_watch = [&signals, next_line = Deadline::Now()](
                                      int64_t rows) mutable {
                 return WatchMigration(rows, signals, &next_line);
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
  const std::string tcp = entrance->address();
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(
      *std::move(entrance), {&trainer, &slow_lane}, resolved.data_dir);
  if (!server.ok()) return server.status();
  folder->Keep();
  const std::string socket = absl::StrCat(
      "unix:", resolved.socket.empty()
                   ? absl::StrCat(resolved.data_dir, "/", kSocketFile)
                   : resolved.socket);
  const std::string& address = tcp.empty() ? socket : tcp;
  trainer.SetListenAddress(address);
  (*runs)->Begin(address);
  std::cout << "tandem-daemon: listening on "
            << (tcp.empty() ? "" : absl::StrCat(tcp, " and ")) << socket
            << ", data in " << Printable(resolved.data_dir) << std::endl;

  int signal = 0;
  sigwait(&signals, &signal);
  std::cerr << "tandem-daemon: " << strsignal(signal) << ", stopping\n";
  // Watchers are told, what is queued is committed, and every call is answered:
  // only then can gRPC end.
  hub.EndAll();
  (*store)->Close();
  (*runs)->AnswerAll();
  (*server)->Shutdown(kStopLimit);
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
