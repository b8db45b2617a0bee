#include "slow_lane/proxy/run_proxy.h"

// Length: one class, whose methods share the state of one link and one worker.

#include <fcntl.h>
#include <google/protobuf/arena.h>
#include <grpcpp/security/credentials.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "base/printable.h"
#include "program/grpc/library_log.h"
#include "program/grpc/mutual_tls.h"
#include "slow_lane/proxy/daemon_link.h"
#include "slow_lane/proxy/event_collector.h"
#include "slow_lane/proxy/file_sender.h"
#include "slow_lane/proxy/frame_sender.h"
#include "slow_lane/proxy/output_pace.h"
#include "slow_lane/proxy/remote_run.h"
#include "slow_lane/runs/limits.h"
#include "slow_lane/runs/process_tree.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/worker_launch.h"

namespace tandem::slow_lane {
namespace {

// The maximum number of unacknowledged small batches: one in the commit, one
// that waits. Later output is combined, as by Nagle's algorithm. With more, 100
// proxies caused a permanent queue of small batches. For large batches the
// maximum is kLinkWindow, enough for full commits in the daemon.
constexpr size_t kWindowOfSmall = 2;
constexpr size_t kSmallBytes = EventCollector::kBatchBytes / 2;
constexpr int kReconnectMs = 200;
// After a read error the proxy tries again: without limit while the worker
// lives, and this number of times after its end.
constexpr int kTriesAfterTheEnd = 5;
constexpr int64_t kNsPerMs = 1'000'000;
// The proxy exits after this time without a worker and without a daemon. The
// next daemon starts another proxy.
constexpr double kAloneSecs = 10;
// If the daemon has become the worker's parent, it writes the exit record. The
// proxy waits this long for it.
constexpr double kExitRecordSecs = 5;
// The maximum time for the last files after the worker's end.
constexpr double kFilesSecs = 60;

void Log(absl::string_view line) {
  std::cerr << PrintableLines(line) << std::endl;
}

// The proxy of one run; one thread.
class Proxy {
 public:
  // `stop`: a signalfd, or -1. `frames`, `files`: nullptr if viewers are here.
  Proxy(const ProxyOptions& options, RunFolder folder, LaunchPlan plan,
        RunConfig config, DaemonLink* link, int stop, FrameSender* frames,
        FileSender* files)
      : options_(options),
        folder_(std::move(folder)),
        plan_(std::move(plan)),
        config_(std::move(config)),
        link_(*link),
        stop_(stop),
        frames_(frames),
        files_(files) {}

  absl::Status Run() {
    absl::Status served = Serve();
    // The run has ended without its worker: no other process ends that one.
    if (options_.is_remote && worker_.has_value()) EndWorker();
    if (options_.is_remote && recorded_ && !config_.persist_logs) {
      unlink(folder_.stdout_path().c_str());
      unlink(folder_.stderr_path().c_str());
    }
    return served;
  }

 private:
  absl::Status Serve() {
    // The proxy watches a living worker also without a daemon.
    TANDEM_ASSIGN_OR_RETURN(AdoptedWorker found,
                            AdoptWorker(folder_, plan_.token));
    if (found.state != AdoptedWorker::State::kNeverStarted) {
      dispatched_ = found.worker.identity;
    }
    if (found.state == AdoptedWorker::State::kRunning) {
      worker_ = std::move(found.worker);
    } else if (found.state == AdoptedWorker::State::kEnded) {
      WorkerHasEnded(found.exit);
    }
    while (!recorded_) {
      if (refused_.has_value()) return absl::FailedPreconditionError(*refused_);
      if (!link_.connected() && MonotonicNanos() >= next_connect_ns_) Connect();
      TakeAnswers();
      if (recorded_) break;
      if (welcome_.has_value() && !worker_.has_value() && !exit_.has_value()) {
        TANDEM_RETURN_IF_ERROR(StartWorker());
      }
      SendStart();
      Deliver();
      // Events go first: without room for their next batch, no frame is sent.
      if (frames_ != nullptr) frames_->Hold(unacknowledged_.size() >= window_);
      SendHeartbeatOrEnd();
      if (welcome_.has_value() && link_.connected()) {
        alone_ = Deadline::After(kAloneSecs);
      }
      if (stopping_ && alone_.PassedAt(MonotonicNanos())) {
        return absl::UnavailableError(absl::StrCat(
            "stopped, and no daemon: what it did not read stays in ",
            folder_.path()));
      }
      // The exit record must be written before, for the next daemon, unless the
      // folder does not exist. No daemon starts another remote proxy.
      if (!options_.is_remote && !worker_.has_value() && !link_.connected() &&
          alone_.PassedAt(MonotonicNanos()) &&
          (FolderIsGone() || (exit_.has_value() && RecordExit()))) {
        Log("no worker runs, and no daemon: the next one of this folder goes "
            "on");
        return absl::OkStatus();
      }
      Wait();
    }
    return absl::OkStatus();
  }

  void Connect() {
    next_connect_ns_ = MonotonicNanos() + kReconnectMs * kNsPerMs;
    welcome_.reset();
    collector_.reset();
    unacknowledged_.clear();
    sent_start_ = sent_end_ = delivered_all_ = false;
    sent_problem_ = tail_problem_.empty();
    pace_.ReadAtOnce();
    v1::Hello hello;
    hello.set_run_id(options_.run_id);
    hello.set_token(plan_.token);
    hello.set_attempt(plan_.attempt);
    if (const absl::StatusOr<ProcessIdentity> self = IdentityOf(getpid());
        self.ok()) {
      *hello.mutable_proxy() = ToProto(*self);
    }
    link_.Connect(hello);
  }

  void TakeAnswers() {
    for (const v1::ToProxy& answer : link_.Take()) {
      switch (answer.message_case()) {
        case v1::ToProxy::kWelcome:
          welcome_ = answer.welcome();
          break;
        case v1::ToProxy::kDurable:
          while (!unacknowledged_.empty() &&
                 unacknowledged_.front() <= answer.durable().offset()) {
            unacknowledged_.pop_front();
          }
          break;
        case v1::ToProxy::kRecorded:
          recorded_ = true;
          break;
        case v1::ToProxy::kRefused:
          refused_ = answer.refused();
          break;
        case v1::ToProxy::MESSAGE_NOT_SET:
          break;  // a message of a newer daemon
      }
    }
  }

  absl::Status StartWorker() {
    absl::StatusOr<RunningWorker> launched = LaunchWorker(folder_, plan_);
    if (launched.ok()) {
      dispatched_ = launched->identity;
      worker_ = *std::move(launched);
      return absl::OkStatus();
    }
    if (absl::IsFailedPrecondition(launched.status())) {
      exit_ = WorkerExit{.how = WorkerExit::How::kNotStarted,
                         .number = 0,
                         .reason = std::string(launched.status().message())};
      return absl::OkStatus();
    }
    // Either an earlier proxy has just launched the worker, or no worker was
    // launched. The daemon starts another proxy, which tries again.
    return launched.status();
  }

  void SendStart() {
    if (!welcome_.has_value() || sent_start_ || !dispatched_.has_value()) {
      return;
    }
    v1::FromProxy message;
    *message.mutable_worker_started() = ToProto(*dispatched_);
    sent_start_ = link_.Send(message);
  }

  absl::Status OpenCollector() {
    const std::string path = folder_.stdout_path();
    // Makes the file if it is missing: the worker never ran.
    const UniqueFd made(
        open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!made.valid()) return MakeSystemError("open", path, errno);
    pace_.Watch(path);
    TANDEM_ASSIGN_OR_RETURN(
        EventCollector collector,
        EventCollector::Open(path, *welcome_, config_.step_stride));
    collector_.emplace(std::move(collector));
    return absl::OkStatus();
  }

  // Collects and sends the available output, up to the window, if the pause has
  // passed.
  void Deliver() {
    if (!welcome_.has_value() || !link_.connected()) return;
    if (!sent_problem_) {
      v1::FromProxy message;
      message.set_output_problem(tail_problem_);
      sent_problem_ = link_.Send(message);
    }
    if (!tail_problem_.empty() && tries_left_ == 0) {
      delivered_all_ = exit_.has_value();
      return;
    }
    // Keeps the pause also after an acknowledgment: otherwise 100 proxies would
    // send smaller and smaller batches.
    if ((!exit_.has_value() || !tail_problem_.empty()) && !pace_.IsDue()) {
      return;
    }
    absl::Status problem;
    if (!collector_.has_value()) problem = OpenCollector();
    if (problem.ok() && exit_.has_value()) collector_->Finish();
    bool grew = false;
    bool more = true;
    while (problem.ok() && unacknowledged_.size() < window_) {
      google::protobuf::Arena arena;
      auto* const message =
          google::protobuf::Arena::CreateMessage<v1::FromProxy>(&arena);
      v1::EventBatch* const batch = message->mutable_batch();
      const absl::StatusOr<bool> found = collector_->Collect(batch);
      if (!found.ok()) {
        problem = found.status();
      } else if (!*found) {
        delivered_all_ = exit_.has_value();
        more = false;
        break;
      } else {
        batch->set_run_id(options_.run_id);
        batch->set_worker_id(config_.worker_id.value_or(""));
        if (!link_.Send(*message)) break;
        unacknowledged_.push_back(batch->end().offset());
        const uint64_t bytes = batch->end().offset() - batch->begin().offset();
        window_ = bytes < kSmallBytes ? kWindowOfSmall : kLinkWindow;
        grew = true;
      }
    }
    NoteTail(problem);
    problem.ok() ? pace_.NoteRead(grew, more) : pace_.NoteError();
  }

  // Notes the result of a read, and whether the proxy tries again.
  void NoteTail(const absl::Status& problem) {
    const std::string text =
        problem.ok()
            ? ""
            : absl::StrCat("its output cannot be read on: ", problem.message());
    if (text != tail_problem_) {
      if (!text.empty()) Log(text);
      tail_problem_ = text;
      sent_problem_ = false;
    }
    if (problem.ok()) return;
    // Truncated output is lost. Other errors may be temporary.
    if (absl::IsFailedPrecondition(problem)) {
      tries_left_ = 0;
    } else if (exit_.has_value()) {
      --tries_left_;
    }
    if (collector_.has_value()) {
      welcome_ = collector_->position();
      collector_.reset();
    }
  }

  void SendHeartbeatOrEnd() {
    if (!welcome_.has_value() || !link_.connected()) return;
    v1::FromProxy message;
    const bool finishing = exit_.has_value() && !FilesAreSent();
    if (!exit_.has_value() || finishing) {
      const int64_t now_ns = MonotonicNanos();
      if (now_ns < next_beat_ns_) return;
      next_beat_ns_ = now_ns + absl::ToInt64Nanoseconds(options_.heartbeat);
      if (finishing) {
        message.set_finishing(true);
      } else {
        message.set_beat(true);
      }
      link_.Send(message);
    } else if (delivered_all_ && unacknowledged_.empty() && !sent_end_) {
      v1::WorkerEnded* const ended = message.mutable_worker_ended();
      *ended = ToProto(*exit_);
      if (!tail_problem_.empty()) ended->set_unknown(tail_problem_);
      ended->set_last_stderr(folder_.LastOfStderr(plan_.stderr_begin));
      sent_end_ = link_.Send(message);
    }
  }

  // Of a worker that has ended. Without them after a while: the report of its
  // end matters more.
  bool FilesAreSent() {
    if (files_ == nullptr) return true;
    if (!files_limit_.has_value()) {
      files_->Finish();
      files_limit_ = Deadline::After(kFilesSecs);
      next_beat_ns_ = 0;  // says so at once
    }
    return files_->finished() || files_limit_->PassedAt(MonotonicNanos());
  }

  // Ends the run's processes. Blocks for the grace.
  void EndWorker() const {
    const absl::StatusOr<ProcessIdentity> self = IdentityOf(getpid());
    const absl::StatusOr<TreeEnd> end =
        EndTree(QueryOf(plan_.token, dispatched_,
                        self.ok() ? std::optional(*self) : std::nullopt),
                absl::ToDoubleSeconds(options_.kill_grace));
    if (!end.ok()) {
      Log(end.status().message());
    } else if (end->ended > 0 || !end->left.empty()) {
      Log(end->Describe());
    }
  }

  // Ray stops the job, or has died: ends the worker, and reports that if the
  // daemon answers in time.
  void Stop() {
    signalfd_siginfo info;
    while (read(stop_, &info, sizeof(info)) > 0) {
    }
    if (!std::exchange(stopping_, true)) Log("SIGTERM: ending the run");
    if (worker_.has_value()) {
      EndWorker();
    } else if (!exit_.has_value()) {
      const std::string reason = "Ray ended its job before";
      PreventLaunch(folder_, reason).IgnoreError();
      exit_ = WorkerExit{
          .how = WorkerExit::How::kNotStarted, .number = 0, .reason = reason};
    }
    alone_ = Deadline::After(kAloneSecs);
  }

  // Call it after the worker's end. Finds the exit status unless it is `known`,
  // ends remaining processes, and writes the exit record.
  void WorkerHasEnded(std::optional<WorkerExit> known) {
    const WorkerExit exit =
        known.has_value() ? *std::move(known) : FindOutHowItEnded();
    EndWorker();  // what it left behind
    exit_ = exit;
    // After an error, such as a full disk, the daemon still gets the exit.
    RecordExit();
    if (worker_.has_value()) Reap(*worker_);
    worker_.reset();
    alone_ = Deadline::After(kAloneSecs);
  }

  // Writes the exit record into the run's folder. Returns false on an error.
  bool RecordExit() {
    if (exit_is_recorded_) return true;
    const absl::Status written = folder_.WriteExit(*exit_);
    if (!written.ok()) Log(written.message());
    exit_is_recorded_ = written.ok();
    return exit_is_recorded_;
  }

  bool FolderIsGone() const {
    return access(folder_.path().c_str(), F_OK) != 0 && errno == ENOENT;
  }

  WorkerExit FindOutHowItEnded() const {
    // If the worker is not this process's child, its parent may be the daemon,
    // which writes the exit record. Otherwise the kernel has the exit status,
    // after the parent has reaped the worker.
    const Deadline deadline = Deadline::After(kExitRecordSecs);
    do {
      if (worker_.has_value()) {
        const std::optional<WorkerExit> seen = EndOf(*worker_);
        if (seen.has_value() && seen->how != WorkerExit::How::kUnknown) {
          return *seen;
        }
      }
      const absl::StatusOr<std::optional<WorkerExit>> written =
          folder_.ReadExit();
      if (written.ok() && written->has_value()) return **written;
      poll(nullptr, 0, OutputPace::kShortestMs);
    } while (!deadline.PassedAt(MonotonicNanos()));
    return {.how = WorkerExit::How::kUnknown,
            .number = 0,
            .reason = "it ended while neither proxy nor daemon was alive"};
  }

  void Wait() {
    if (recorded_ || refused_.has_value()) return;
    pollfd fds[] = {{.fd = link_.wake_fd(), .events = POLLIN, .revents = 0},
                    {.fd = worker_.has_value() ? worker_->pidfd.get() : -1,
                     .events = POLLIN,
                     .revents = 0},
                    {.fd = stop_, .events = POLLIN, .revents = 0},
                    {.fd = link_.connected() ? pace_.wake_fd() : -1,
                     .events = POLLIN,
                     .revents = 0}};
    int wait_ms = link_.connected() ? pace_.pause_ms() : kReconnectMs;
    for (const int64_t next_ns : {pace_.next_ns(), next_beat_ns_}) {
      const int64_t until_ns = next_ns - MonotonicNanos();
      if (until_ns <= 0) continue;
      wait_ms = static_cast<int>(
          std::min<int64_t>(wait_ms, (until_ns + kNsPerMs - 1) / kNsPerMs));
    }
    poll(fds, std::size(fds), wait_ms);
    if (fds[3].revents != 0) pace_.Wake();
    if (worker_.has_value()) ReapOrphans(worker_->identity.pid);
    if (fds[2].revents != 0) Stop();
    if (fds[1].revents != 0) WorkerHasEnded(std::nullopt);
  }

  const ProxyOptions options_;
  const RunFolder folder_;
  const LaunchPlan plan_;
  const RunConfig config_;
  DaemonLink& link_;
  const int stop_;
  FrameSender* const frames_;
  FileSender* const files_;

  // The state of the current link.
  std::optional<v1::Position> welcome_;  // where to read on
  bool sent_start_ = false;
  bool sent_problem_ = true;
  bool sent_end_ = false;
  std::optional<EventCollector> collector_;
  std::deque<uint64_t> unacknowledged_;  // offsets at which batches end
  size_t window_ = kLinkWindow;
  bool delivered_all_ = false;  // all output of a worker that has ended
  int64_t next_beat_ns_ = 0;
  int64_t next_connect_ns_ = 0;  // a stopping daemon ends each call at once

  std::optional<ProcessIdentity> dispatched_;
  std::optional<RunningWorker> worker_;  // until it has ended
  std::optional<WorkerExit> exit_;
  std::optional<Deadline> files_limit_;
  bool exit_is_recorded_ = false;
  std::string tail_problem_;
  int tries_left_ = kTriesAfterTheEnd;
  Deadline alone_ = Deadline::After(kAloneSecs);
  bool recorded_ = false;
  bool stopping_ = false;
  std::optional<std::string> refused_;
  OutputPace pace_;
};

absl::Status RunRemoteProxy(const ProxyOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const UniqueFd stop, OpenStopSignal());
  TANDEM_RETURN_IF_ERROR(BecomeSubreaper());
  const std::string daemon = DaemonOfRemote();
  TANDEM_ASSIGN_OR_RETURN(const auto credentials, DaemonCredentials(daemon));
  DaemonLink link(daemon, credentials);
  std::error_code error;
  const RunFolder folder = RunFolder::At(
      std::filesystem::current_path(error).string(), options.run_id);
  TANDEM_RETURN_IF_ERROR(MakeRemoteFolder(options.run_id, folder, link));
  TANDEM_ASSIGN_OR_RETURN(const ProxyLock lock, ProxyLock::Acquire(folder));
  TANDEM_ASSIGN_OR_RETURN(LaunchPlan plan, folder.ReadLaunchPlan());
  TANDEM_ASSIGN_OR_RETURN(RunConfig config, ReadRunConfig(folder));
  std::optional<FrameSender> frames;
  if (!config.fast_lane.empty()) {
    frames.emplace(link, options.run_id, plan.token);
  }
  FileSender files(link, folder, options.run_id, plan.token);
  return Proxy(options, folder, std::move(plan), std::move(config), &link,
               stop.get(), frames.has_value() ? &*frames : nullptr, &files)
      .Run();
}

}  // namespace

absl::Status RunProxy(const ProxyOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  RouteLibraryLog("proxy");
  if (options.is_remote) return RunRemoteProxy(options);
  const RunFolder folder = RunFolder::At(".", options.run_id);
  TANDEM_ASSIGN_OR_RETURN(const ProxyLock lock, ProxyLock::Acquire(folder));
  TANDEM_ASSIGN_OR_RETURN(RunConfig config, ReadRunConfig(folder));
  if (config.on_ray) {
    return BecomeRayJob(options.run_id, options.public_address, lock);
  }
  TANDEM_RETURN_IF_ERROR(BecomeSubreaper());
  TANDEM_ASSIGN_OR_RETURN(LaunchPlan plan, folder.ReadLaunchPlan());
  DaemonLink link(absl::StrCat("unix:", kSocketFile),
                  grpc::InsecureChannelCredentials());
  return Proxy(options, folder, std::move(plan), std::move(config), &link, -1,
               nullptr, nullptr)
      .Run();
}

}  // namespace tandem::slow_lane
