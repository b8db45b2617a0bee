#include "viz/core/event_follower.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/protos/trainer.grpc.pb.h"
#include "viz/core/daemon_channel.h"
#include "viz/core/quantities.h"

namespace tandem {
namespace {

namespace trainer = gymgui::trainer;

constexpr double kRetrySecs = 0.1;
// Credits are granted in portions: a message for each step would double the
// traffic. A watcher has 200 at first.
constexpr uint32_t kPortion = 50;

// Whether a later attempt may succeed: the daemon is gone, or it is stopping.
bool MayComeBack(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kCancelled ||
         status.code() == absl::StatusCode::kUnknown;
}

EventFollower::Events EventsSince(uint64_t step) {
  EventFollower::Events events;
  events.last_step = step;
  return events;
}

}  // namespace

// The contexts of the open calls, for the destructor's cancellation.
struct EventFollower::Calls {
  explicit Calls(const std::string& target)
      : channel(NewDaemonChannel(target)),
        stub(trainer::TrainerService::NewStub(channel)) {}

  // Registers a context while its call is open.
  class Open {
   public:
    Open(Calls* calls, grpc::ClientContext* context)
        : calls_(calls), context_(context) {
      MutexLock lock(&calls_->mutex);
      calls_->contexts.push_back(context_);
      if (calls_->cancelled) context_->TryCancel();
    }
    ~Open() {
      MutexLock lock(&calls_->mutex);
      std::erase(calls_->contexts, context_);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Calls* const calls_;
    grpc::ClientContext* const context_;
  };

  void Cancel() {
    MutexLock lock(&mutex);
    cancelled = true;
    for (grpc::ClientContext* const context : contexts) context->TryCancel();
  }

  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<trainer::TrainerService::Stub> stub;
  Mutex mutex;
  std::vector<grpc::ClientContext*> contexts ABSL_GUARDED_BY(mutex);
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
};

EventFollower::EventFollower(const std::string& target, std::string run_id,
                             uint64_t since_step)
    : target_(target),
      run_id_(std::move(run_id)),
      calls_(std::make_unique<Calls>(target)),
      events_(EventsSince(since_step)),
      steps_thread_([this] { Follow([this] { return FollowSteps(); }); }),
      episodes_thread_(
          [this] { Follow([this] { return FollowEpisodes(); }); }) {}

EventFollower::~EventFollower() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  wake_.SignalAll();
  calls_->Cancel();
  steps_thread_.join();
  episodes_thread_.join();
}

EventFollower::Events EventFollower::Read() const {
  MutexLock lock(&mutex_);
  return events_;
}

void EventFollower::Follow(absl::FunctionRef<absl::Status()> stream) {
  for (;;) {
    AwaitConnection(calls_->channel.get(), kRetrySecs);
    const absl::Status status = stream();
    MutexLock lock(&mutex_);
    if (status.ok()) {
      // Both streams end when the run has ended and all events were sent.
      events_.has_ended = ++ended_streams_ == 2;
      return;
    }
    events_.connected = false;
    if (!MayComeBack(status)) {
      events_.problem = std::string(status.message());
      return;
    }
    // A stopping daemon refuses at once.
    const Deadline retry = Deadline::After(kRetrySecs);
    while (!ending_ && !retry.PassedAt(MonotonicNanos())) {
      wake_.WaitUntil(&mutex_, retry);
    }
    if (ending_) return;
  }
}

absl::Status EventFollower::FollowSteps() {
  // A key of this stream's own: the credits are for it alone.
  const std::string key = absl::StrCat("tandem-view-", std::random_device()());
  grpc::ClientContext control_context;
  TANDEM_RETURN_IF_ERROR(AddDaemonToken(&control_context));
  control_context.AddMetadata("watcher-id", key);
  const Calls::Open control_open(calls_.get(), &control_context);
  const auto control = calls_->stub->ControlStream(&control_context);
  trainer::ControlEvent limit;
  limit.set_run_id(run_id_);
  limit.set_max_rate_hz(kStepsPerSec);
  // The daemon refuses an unknown run by the status of the stream.
  if (!control->Write(limit))
    return DaemonStatus(control->Finish(), "ControlStream", target_);
  control->WaitForInitialMetadata();  // the limit holds

  trainer::StreamStepsRequest request;
  request.set_run_id(run_id_);
  request.set_since_seq(Read().last_step);
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(AddDaemonToken(&context));
  context.AddMetadata("watcher-id", key);
  const Calls::Open open(calls_.get(), &context);
  const auto reader = calls_->stub->StreamRunSteps(&context, request);
  trainer::RunStep step;
  uint32_t taken = 0;
  while (reader->Read(&step)) {
    {
      MutexLock lock(&mutex_);
      events_.connected = true;
      events_.last_step = step.seq_id();
      events_.steps.push_back({.number = step.seq_id(),
                               .episode = step.episode_index(),
                               .step = step.step_index(),
                               .reward = step.reward(),
                               .ended = step.terminated() || step.truncated()});
      if (events_.steps.size() > kKeptSteps) events_.steps.pop_front();
    }
    if (++taken < kPortion) continue;
    taken = 0;
    trainer::ControlEvent grant;
    grant.set_run_id(run_id_);
    grant.set_grant_steps(kPortion);
    if (control->Write(grant)) continue;
    // Without credits no step would come, and Finish would wait for one.
    context.TryCancel();
    break;
  }
  control_context.TryCancel();
  return DaemonStatus(reader->Finish(), "StreamRunSteps", target_);
}

std::string SummaryText(const EventFollower::Events& events) {
  return absl::StrCat(CountText(events.last_step), " steps, ",
                      CountText(events.last_episode), " episodes: ",
                      !events.problem.empty() ? events.problem
                      : events.has_ended      ? "all received"
                      : events.connected      ? "live"
                                              : "looking for the daemon");
}

absl::Status EventFollower::FollowEpisodes() {
  trainer::StreamEpisodesRequest request;
  request.set_run_id(run_id_);
  request.set_since_seq(Read().last_episode);
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(AddDaemonToken(&context));
  const Calls::Open open(calls_.get(), &context);
  const auto reader = calls_->stub->StreamRunEpisodes(&context, request);
  trainer::RunEpisode episode;
  while (reader->Read(&episode)) {
    MutexLock lock(&mutex_);
    events_.connected = true;
    events_.last_episode = episode.seq_id();
  }
  return DaemonStatus(reader->Finish(), "StreamRunEpisodes", target_);
}

}  // namespace tandem
