#include "engine_adapter/server_main.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/flags/flag.h"
#include "absl/flags/marshalling.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/os/launcher_watch.h"
#include "base/os/machine.h"
#include "base/os/process_handle.h"
#include "base/os/stop_signals.h"
#include "base/printable.h"
#include "engine_adapter/core/thread_pool.h"
#include "engine_adapter/frames/frame_flags.h"
#include "engine_adapter/host/command_line.h"
#include "engine_adapter/host/gateway_process.h"
#include "engine_adapter/rpc_config.h"
#include "transport/memory/region_plan.h"
#include "transport/region.h"
#include "transport/wait_strategy.h"

namespace tandem {

// absl's flags find these by argument-dependent lookup.
bool AbslParseFlag(absl::string_view text, WaitStrategy* wait, std::string*) {
  const std::optional<WaitStrategy> named = WaitStrategyNamed(text);
  if (named) *wait = *named;
  return named.has_value();
}

std::string AbslUnparseFlag(WaitStrategy wait) {
  return std::string(NameOf(wait));
}

}  // namespace tandem

ABSL_FLAG(std::string, name, "",
          "name of the region, by which clients find it; {pid} in it is this "
          "process's id; empty: the environment variable LUCKY_SHM_NAME, else "
          "tandem, or tandem-2 and so on if a live engine has that name "
          "(tandem alone with --grpc)");
ABSL_FLAG(uint32_t, num_envs, 1, "number of environments, 1 to 16777216");
ABSL_FLAG(uint32_t, threads, 0,
          "number of threads that step them, at most 4096; 0: as many as cores "
          "and environments allow");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt,
          "integer, 0 to 18446744073709551615: environment i starts from seed "
          "+ i; empty: a random seed");
ABSL_FLAG(tandem::WaitStrategy, wait, tandem::WaitStrategy::kAdaptive,
          "how to wait for actions: spin (lowest latency, needs a core of its "
          "own), adaptive, or block (sleeps at once)");
ABSL_FLAG(bool, group_access, false,
          "true: users of the same group may attach as well");
ABSL_FLAG(std::string, grpc, "",
          "HOST:PORT at which tandem-gateway serves programs for LuckyEngine "
          "as long as this server runs; port 0 takes a free one; empty: none");
ABSL_FLAG(int, launcher_fd, -1,
          "number of an inherited pipe's reading end: stop when the launcher "
          "closes its writing end or dies; -1: none");

namespace tandem {
namespace {

constexpr uint32_t kMaxThreads = 4096;
// The texts of the flags contain both numbers.
static_assert(kMaxEnvs == 16777216 && kMaxThreads == 4096);

// Writer: the signal handler; readers: the main thread, and the thread that
// renders images. 0: no signal yet.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);
// Writer: the main thread; reader: its signal handler. Other threads block all
// signals, so the handler never runs during the host's destructor.
std::atomic<EngineHost*> serving_host{nullptr};
static_assert(std::atomic<EngineHost*>::is_always_lock_free);

// The time of the first signal. Writer and reader: the signal handler.
std::atomic<int64_t> stopping_since_ns{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// The first signal stops the server cleanly. A later one ends a stuck engine,
// but only after a second: timeout(1), or a terminal and a wrapper program, may
// send two signals at the same time.
void OnStopSignal(int signal_number) {
  constexpr int64_t kImpatientNs = 1'000'000'000;
  const int error = errno;
  const int64_t now_ns = MonotonicNanos();
  // relaxed: here and below, the reader is the thread that this handler
  // interrupts.
  const int64_t since_ns = stopping_since_ns.load(std::memory_order_relaxed);
  if (since_ns == 0) {
    // relaxed: as above.
    stopping_since_ns.store(now_ns, std::memory_order_relaxed);
  } else if (now_ns - since_ns > kImpatientNs) {
    EndBySignal(signal_number);
  }
  // relaxed: as above.
  stop_signal.store(signal_number, std::memory_order_relaxed);
  // relaxed: the interrupted thread wrote it.
  EngineHost* const host = serving_host.load(std::memory_order_relaxed);
  if (host != nullptr) host->RequestStop();
  errno = error;
}

int Report(const absl::Status& status) {
  LogLine(
      absl::StrCat("error: ", NameOf(CodeOf(status)), ": ", status.message()));
  return CodeOf(status) == ErrorCode::kInvalidArgument ? kExitBadUsage
                                                       : kExitFailed;
}

std::string Describe(const EngineSchema& schema, const ServerOptions& options,
                     const std::string& name, const RegionMapping& region) {
  return absl::StrFormat(
      "serving '%s' (%s): %d environments, %d observations, %d actions, %d "
      "threads, region of %d KiB (%d KiB of it in huge pages), pid %d; attach "
      "with tandem.SharedMemoryClient('%s')",
      name, schema.task, schema.num_envs, schema.obs_size, schema.act_size,
      options.threads, region.bytes() / 1024, region.HugePageBytes() / 1024,
      ProcessId(), name);
}

// Handles the launcher's end in every state of the main thread: loading models,
// serving, or stuck in a step.
class LauncherGuard {
 public:
  explicit LauncherGuard(int launcher_fd) {
    if (launcher_fd >= 0) {
      watch_.emplace(
          launcher_fd, [this] { OnLeft(); }, [this] { OnStuck(); });
    }
  }
  // Before this call the process may end at once, since there is no host to
  // stop.
  void Serving(EngineHost* host) {
    MutexLock lock(&mutex_);
    host_ = host;
  }
  // The main thread begins to destroy the host and its region.
  void Stopping() {
    MutexLock lock(&mutex_);
    host_ = nullptr;
    stopping_ = true;
  }
  bool HasLeft() const { return watch_ && watch_->HasLeft(); }

 private:
  void OnLeft() {
    MutexLock lock(&mutex_);
    if (host_ != nullptr) return host_->RequestStop();
    if (stopping_) return;
    LogLine("stopped: the launcher has left");
    std::_Exit(kExitStopped);
  }
  void OnStuck() {
    MutexLock lock(&mutex_);
    if (host_ != nullptr) host_->RemoveName();
    LogLine("stopped in the middle of a step: the launcher has left");
    std::_Exit(kExitFailed);
  }

  Mutex mutex_;
  EngineHost* host_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<LauncherWatch> watch_;
};

void LogStopped(bool launcher_left) {
  // relaxed: the signal handler of this thread wrote it.
  const int signal_number = stop_signal.load(std::memory_order_relaxed);
  LogLine(launcher_left ? "stopped: the launcher has left"
          : signal_number == 0
              ? "stopped: the engine's loop has ended"
              : absl::StrCat("stopped: ", DescribeSignal(signal_number)));
}

// Returns the values of the flags, or kInvalidArgument.
absl::StatusOr<ServerOptions> OptionsFromFlags() {
  ServerOptions options;
  options.num_envs = absl::GetFlag(FLAGS_num_envs);
  const uint32_t threads = absl::GetFlag(FLAGS_threads);
  if (options.num_envs == 0 || options.num_envs > kMaxEnvs) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("--num_envs: expected 1 to ", kMaxEnvs,
                                  ", found ", options.num_envs));
  }
  if (threads > kMaxThreads) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("--threads: expected at most ", kMaxThreads,
                                  ", found ", threads));
  }
  options.threads = threads > 0 ? static_cast<int>(threads)
                                : SuitableThreads(options.num_envs);
  const int launcher_fd = absl::GetFlag(FLAGS_launcher_fd);
  if (launcher_fd >= 0 && !HideFromChildren(launcher_fd)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat(
            "--launcher_fd: expected the number of an open descriptor, found ",
            launcher_fd, " (", std::strerror(errno), ")"));
  }
  return options;
}

// Makes an engine, opens its host by `open_host`, and serves it by `loop` until
// a stop is requested.
template <typename AnyEngine>
absl::Status Serve(
    const std::function<absl::StatusOr<std::unique_ptr<AnyEngine>>(
        const ServerOptions&)>& make_engine,
    const std::function<absl::Status(EngineHost*, AnyEngine*)>& open_host,
    const std::function<absl::Status(EngineHost*)>& loop) {
  TANDEM_ASSIGN_OR_RETURN(const ServerOptions options, OptionsFromFlags());
  LauncherGuard launcher(absl::GetFlag(FLAGS_launcher_fd));
  TANDEM_ASSIGN_OR_RETURN(const RpcFlags rpc_flags, RpcFromFlags());
  TANDEM_ASSIGN_OR_RETURN(auto frames, FramesFromFlags(options.num_envs));
  TANDEM_ASSIGN_OR_RETURN(auto images, ImagesFromFlags());
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<AnyEngine> engine,
                          make_engine(options));
  if (engine == nullptr) return absl::OkStatus();
  std::optional<GatewayProcess> gateway;
  std::string name = absl::GetFlag(FLAGS_name);
  const std::string listen = absl::GetFlag(FLAGS_grpc);
  // The gateway needs the name before the region has one.
  if (!listen.empty() && name.empty()) name = DefaultRegionName();
  absl::StatusOr<std::unique_ptr<EngineHost>> host = EngineHost::CreateTicked(
      engine.get(),
      {.name = name,
       .seed = absl::GetFlag(FLAGS_seed),
       .wait = absl::GetFlag(FLAGS_wait),
       .wakes_early = options.threads < UsableCores(),
       .group_access = absl::GetFlag(FLAGS_group_access),
       .rpc = rpc_flags.config,
       .rpc_ring_bytes = rpc_flags.ring_bytes,
       .image_slot_bytes = rpc_flags.image_slot_bytes,
       .mode = rpc_flags.mode,
       .frames = std::move(frames),
       .images = std::move(images),
       .scene_hz = SceneHzFromFlags(),
       // relaxed: the number publishes no other data.
       .stopping =
           [] { return stop_signal.load(std::memory_order_relaxed) != 0; },
       .opened =
           [&](const std::string& region, const RegionMapping& mapping) {
             LogLine(Describe(engine->schema(), options, region, mapping));
           },
       .log = LogLine});
  if (!host.ok()) return host.status();
  if (!listen.empty()) {
    TANDEM_ASSIGN_OR_RETURN(
        GatewayProcess started,
        GatewayProcess::Start(
            listen,
            absl::StrReplaceAll(name, {{"{pid}", absl::StrCat(ProcessId())}})));
    LogLine(started.text());
    gateway.emplace(std::move(started));
  }
  // Until here, while models are loaded and the region's memory is reserved, a
  // signal ends the process at once: the region has no name yet.
  HandleStopSignals(OnStopSignal);
  const absl::Status opened = open_host(host->get(), engine.get());
  if (CodeOf(opened) == ErrorCode::kInterrupted) {
    LogStopped(/*launcher_left=*/false);
    return absl::OkStatus();
  }
  if (!opened.ok()) return opened;

  launcher.Serving(host->get());
  // relaxed: only the handler in this thread reads it; see serving_host.
  serving_host.store(host->get(), std::memory_order_relaxed);
  if (stop_signal.load(std::memory_order_relaxed) != 0) {
    (*host)->RequestStop();
  }
  absl::Status ended = Guarded([&] { return loop(host->get()); });
  // relaxed: as above.
  serving_host.store(nullptr, std::memory_order_relaxed);
  const bool launcher_left = launcher.HasLeft();
  launcher.Stopping();
  host->reset();
  // A signal may have ended the first rendering of images.
  if (CodeOf(ended) == ErrorCode::kInterrupted) ended = absl::OkStatus();
  if (ended.ok()) LogStopped(launcher_left);
  return ended;
}

int Run(int argc, const char* const* argv, absl::string_view usage,
        absl::Span<const OwnFlag> own,
        const std::function<absl::Status()>& serve) {
  PrepareServer();
  absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv, own);
  if (!line.ok()) return Report(line.status());
  if (line->help_wanted) {
    const std::string help = HelpText(usage);
    std::fwrite(help.data(), 1, help.size(), stdout);
    return kExitStopped;
  }
  try {
    const absl::Status status = serve();
    return status.ok() ? kExitStopped : Report(status);
  } catch (const std::bad_alloc&) {
    return Report(
        MakeError(ErrorCode::kOutOfSharedMemory,
                  "memory has no room for the engine; use fewer environments"));
  } catch (const std::system_error& error) {
    // Comes from a thread's start; other system calls report errors by a
    // status.
    return Report(MakeError(
        ErrorCode::kEngineFailed,
        absl::StrCat("expected room for one more thread, found: ", error.what(),
                     "; raise `ulimit -u`")));
  } catch (const std::exception& error) {
    return Report(MakeError(ErrorCode::kEngineFailed, error.what()));
  }
}

}  // namespace

void LogLine(absl::string_view line) {
  std::string text = absl::StrCat("tandem ", TimeOfDay(), " ");
  absl::StrAppend(&text, Printable(absl::StrReplaceAll(line, {{"\n", " "}})),
                  "\n");
  WriteToStandardError(text);
}

int RunServer(int argc, const char* const* argv, absl::string_view usage,
              const EngineFactory& make_engine) {
  return Run(argc, argv, usage, /*own=*/{}, [&] {
    return Serve<Engine>(
        make_engine,
        [](EngineHost* host, Engine* engine) {
          return host->CallEngine(engine);
        },
        [](EngineHost* host) {
          host->Run();
          return absl::OkStatus();
        });
  });
}

int RunTickedServer(int argc, const char* const* argv, absl::string_view usage,
                    const TickedEngineFactory& make_engine,
                    const std::function<absl::Status(EngineHost*)>& loop,
                    absl::Span<const OwnFlag> own) {
  return Run(argc, argv, usage, own, [&] {
    return Serve<EngineBase>(
        make_engine, [](EngineHost*, EngineBase*) { return absl::OkStatus(); },
        loop);
  });
}

}  // namespace tandem
