#include "tests/benchmark/iceoryx_rows.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "iceoryx_hoofs/log/logmanager.hpp"
#include "iceoryx_posh/popo/untyped_client.hpp"
#include "iceoryx_posh/popo/untyped_server.hpp"
#include "iceoryx_posh/popo/wait_set.hpp"
#include "iceoryx_posh/runtime/posh_runtime.hpp"
#include "program/end_with_parent.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "transport/base/blocked_signals.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

constexpr char kRouDi[] = "/usr/bin/iox-roudi";

std::string NoChunk(const char* what, uint32_t bytes) {
  return absl::StrCat("iceoryx: expected a chunk of ", bytes, " bytes for a ",
                      what,
                      ", found none free. Next: see the size and count of "
                      "chunks that RouDi is given in iceoryx_rows.cc");
}

std::string NotSent(const char* what) {
  return absl::StrCat("iceoryx: expected to send a ", what,
                      ", found it refused. Next: see whether the other side's "
                      "process still runs");
}

void WriteFile(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    Fail(absl::StrCat("iceoryx: expected to be allowed to write ", path,
                      ", found: ", std::strerror(errno),
                      ". Next: leave its rows out, or run as root"),
         kUnavailable);
  }
}

// Gives this process a /dev/shm and a /tmp that nobody else sees.
void EnterOwnFolders() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    // Those who may not do that may as the root of a namespace of users.
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      Fail(absl::StrCat(
               "iceoryx: expected to be allowed a mount namespace, found: ",
               std::strerror(errno),
               ". Next: leave its rows out, or run as root (in a "
               "container: with CAP_SYS_ADMIN)."),
           kUnavailable);
    }
    WriteFile("/proc/self/setgroups", "deny");
    WriteFile("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1"));
    WriteFile("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1"));
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) != 0 ||
      mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) != 0) {
    Fail(absl::StrCat("iceoryx: expected to be allowed to mount, found: ",
                      std::strerror(errno),
                      ". Next: leave its rows out, or run as root (in a "
                      "container: with CAP_SYS_ADMIN)."),
         kUnavailable);
  }
}

// RouDi, as long as the process that made this runs, however that ends.
class RouDi {
 public:
  explicit RouDi(uint32_t chunk_bytes) {
    constexpr char kConfig[] = "/tmp/roudi.toml";
    WriteFile(kConfig, absl::StrCat("[general]\nversion = 1\n[[segment]]\n"
                                    "[[segment.mempool]]\nsize = ",
                                    chunk_bytes, "\ncount = 16\n"));
    process_ = fork();
    RequireCall(process_ >= 0, "fork");
    if (process_ == 0) {
      // Nothing that it would clean up outlives the namespace.
      EndWithParent(SIGKILL, parent_);
      // It talks, and our stdout is for figures.
      const int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
      dup2(silence, STDOUT_FILENO);
      dup2(silence, STDERR_FILENO);
      execl(kRouDi, kRouDi, "--monitoring-mode", "off", "--log-level", "off",
            "--config-file", kConfig, nullptr);
      _exit(127);
    }
    while (access("/tmp/roudi", F_OK) != 0) {
      if (waitpid(process_, nullptr, WNOHANG) != 0) {
        Fail(absl::StrCat("iceoryx: expected ", kRouDi,
                          " to run, found that it ended. Next: tools/setup"));
      }
      usleep(1000);
    }
  }
  RouDi(const RouDi&) = delete;
  RouDi& operator=(const RouDi&) = delete;
  ~RouDi() {
    if (getpid() != parent_) return;  // the engine, which fork gave a copy
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

 private:
  const pid_t parent_ = getpid();
  pid_t process_;
};

using WaitSet = iox::popo::WaitSet<1>;

// SIGTERM lets the engine's exchange come to its end: killed in the midst of
// it, it may leave a lock that its client then waits for. Writers: the handler,
// and Serve; reader: the thread that serves, which the handler interrupts.
std::atomic<bool> stopping{false};
std::atomic<WaitSet*> sleeping_in{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<WaitSet*>::is_always_lock_free);

void StopServing(int) {
  // relaxed: for the thread that this interrupts, or by it before the handler
  // was there. iceoryx's own threads take no signals (Begin).
  stopping.store(true, std::memory_order_relaxed);
  WaitSet* const wait_set = sleeping_in.load(std::memory_order_relaxed);
  if (wait_set != nullptr) wait_set->markForDestruction();
}

void StopOnSigterm(WaitSet* wait_set) {
  // relaxed: as in StopServing.
  sleeping_in.store(wait_set, std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = StopServing;
  sigaction(SIGTERM, &action, nullptr);
}

enum class Waiting { kPoll, kWaitSet };

// How one side waits for the next message of its port, a client or a server.
template <Waiting kWaiting, typename Port, typename State>
class Inbox {
 public:
  Inbox(Port& port, State has_message) : port_(port) {
    if (kWaiting == Waiting::kPoll) return;
    wait_set_.emplace();
    if (wait_set_->attachState(port, has_message).has_error()) {
      Fail(
          "iceoryx: expected to attach to a WaitSet, found it refused. Next: "
          "rerun");
    }
  }

  // Null when SIGTERM came.
  const void* Await() {
    // relaxed: as in StopServing.
    while (!stopping.load(std::memory_order_relaxed)) {
      auto taken = port_.take();
      if (!taken.has_error()) return taken.value();
      if (kWaiting == Waiting::kPoll) {
        Relax();
      } else {
        wait_set_->wait();
      }
    }
    return nullptr;
  }

  WaitSet* wait_set() { return wait_set_ ? &*wait_set_ : nullptr; }

 private:
  Port& port_;
  std::optional<WaitSet> wait_set_;
};

template <Waiting kWaiting>
class IceoryxRow final : public Row {
 public:
  explicit IceoryxRow(const Size& size)
      : size_(size), result_size_{.envs = size.envs, .obs = size.obs} {
    EnterOwnFolders();
    // The header of a chunk, and what aligning its payload may take.
    constexpr size_t kHeaderBytes = 1024;
    // Ends after the runtime, which says goodbye to it and is younger.
    static const RouDi roudi(
        static_cast<uint32_t>(kHeaderBytes + Payload::Bytes(size)));
  }

  void Serve() override {
    Begin("engine");
    iox::popo::UntypedServer server(kService);
    Inbox<kWaiting, iox::popo::UntypedServer, iox::popo::ServerState> inbox(
        server, iox::popo::ServerState::HAS_REQUEST);
    const auto bytes = static_cast<uint32_t>(Payload::Bytes(result_size_));
    StopOnSigterm(inbox.wait_set());
    while (const void* const actions = inbox.Await()) {
      auto loan = server.loan(iox::popo::RequestHeader::fromPayload(actions),
                              bytes, Payload::kAlignment);
      if (loan.has_error()) Fail(NoChunk("response", bytes));
      const Payload results(result_size_, loan.value());
      TrivialWork(size_, static_cast<const float*>(actions), results.obs,
                  results.rewards, results.dones);
      if (server.send(loan.value()).has_error()) Fail(NotSent("response"));
      server.releaseRequest(actions);
    }
    _exit(0);  // a goodbye would wait for RouDi, which may be gone
  }

  void Connect() override {
    Begin("client");
    client_.emplace(kService);
    inbox_.emplace(*client_, iox::popo::ClientState::HAS_RESPONSE);
    while (client_->getConnectionState() != iox::ConnectionState::CONNECTED) {
      usleep(1000);
    }
  }

  Results Exchange(const float* actions) override {
    if (response_ != nullptr) client_->releaseResponse(response_);
    const auto bytes = static_cast<uint32_t>(size_.action_floats() * 4);
    auto loan = client_->loan(bytes, Payload::kAlignment);
    if (loan.has_error()) Fail(NoChunk("request", bytes));
    std::memcpy(loan.value(), actions, bytes);
    if (client_->send(loan.value()).has_error()) Fail(NotSent("request"));
    response_ = inbox_->Await();
    return Payload(result_size_, const_cast<void*>(response_)).results();
  }

 private:
  static inline const iox::capro::ServiceDescription kService{
      "tandem", "benchmark", "step"};

  static void Begin(const char* name) {
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(
        iox::log::LogLevel::kError, iox::log::LogLevelOutput::kHideLogLevel);
    // Its threads run no handlers: those are for the one that serves.
    const BlockedSignals blocked;
    iox::runtime::PoshRuntime::initRuntime(iox::RuntimeName_t(
        iox::cxx::TruncateToCapacity, name, std::strlen(name)));
  }

  Size size_;
  Size result_size_;  // with no actions
  std::optional<iox::popo::UntypedClient> client_;
  std::optional<
      Inbox<kWaiting, iox::popo::UntypedClient, iox::popo::ClientState>>
      inbox_;
  const void* response_ = nullptr;
};

}  // namespace

std::unique_ptr<Row> MakeIceoryxRow(absl::string_view name,
                                    const RowOptions& options) {
  if (name == "iceoryx_spin") {
    return std::make_unique<IceoryxRow<Waiting::kPoll>>(options.size);
  }
  if (name == "iceoryx_block") {
    return std::make_unique<IceoryxRow<Waiting::kWaitSet>>(options.size);
  }
  return nullptr;
}

}  // namespace tandem
