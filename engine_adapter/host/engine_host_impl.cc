#include "engine_adapter/host/engine_host_impl.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "transport/frame_writer.h"

namespace tandem {

EngineHost::Impl::Impl(EngineBase* engine, Options options,
                       std::shared_ptr<ExportedArrays> gpu, EngineSide side)
    : engine_(engine),
      options_(std::move(options)),
      has_images_(options_.images || engine->schema().images.width != 0),
      gpu_(std::move(gpu)),
      side_(std::move(side)),
      runner_(&side_.arrays()),
      simulation_(
          engine, &side_, &runner_, FirstMode(options_),
          [this] { StartWork(Purpose::kServiceReset); },
          [this](bool begun, size_t caller) {
            callers_.LogPause(begun, caller);
          }),
      scene_(engine->scene(), engine->schema().num_envs,
             engine->schema().description.has_rewards, SceneLinks()),
      callers_(options_.rpc, engine, &simulation_, &side_, &scene_,
               [this](absl::string_view line) { Log(line); }) {
  if (gpu_ == nullptr && !has_images_) return;
  ExchangeRunner::OtherArrays others;
  others.keep_final = [this](auto envs) { return KeepFinal(envs); };
  if (gpu_ != nullptr) {
    others.zero_rewards = [this](auto envs) { return gpu_->ZeroRewards(envs); };
  }
  runner_.AlsoChange(std::move(others));
}

LiveScene::Links EngineHost::Impl::SceneLinks() {
  return {.name = [this] { return side_.region().name(); },
          .hz = options_.scene_hz,
          .wake_step_thread = [this] { side_.WakeStepThread(); },
          .has_own_rewards = [this] { return side_.OwnRun().has_value(); },
          .watched =
              [this](bool watched) {
                has_viewers_ = watched || options_.frames.has_value();
              },
          .step_secs = engine_->step_secs()};
}

absl::Status EngineHost::Impl::KeepFinal(std::span<const uint32_t> envs) {
  // A step without an exchange does not change the region.
  if (has_images_ && purpose_ == Purpose::kExchange) {
    TANDEM_RETURN_IF_ERROR(KeepFinalImages(envs));
  }
  return gpu_ == nullptr ? absl::OkStatus() : gpu_->KeepFinalRows(envs);
}

absl::Status EngineHost::Impl::KeepFinalImages(std::span<const uint32_t> envs) {
  const StepArrays& arrays = side_.arrays();
  if (images_ != nullptr) return images_->DrawInto(envs, arrays.final_images);
  // The engine's step has written them.
  const size_t row = arrays.images.size() / arrays.num_envs;
  for (const uint32_t env : envs) {
    std::ranges::copy(arrays.images.subspan(env * row, row),
                      arrays.final_images.subspan(env * row).begin());
  }
  return absl::OkStatus();
}

absl::Status EngineHost::Impl::BeginOpening() {
  if (options_.images) {
    TANDEM_RETURN_IF_ERROR(StartImages());
  }
  runner_.BeginResetAll(options_.seed);
  StartWork(Purpose::kOpening);
  return opening_;
}

absl::Status EngineHost::Impl::CallEngine(Engine* engine) {
  if (taken_) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected no work in progress, found work that Next has "
                     "returned; call Done first");
  }
  synchronous_ = engine;
  if (runner_.work() != nullptr) {
    RunAll(&runner_, synchronous_);
    FinishWork();
  }
  return opening_;
}

EngineHost::Impl::~Impl() { Stop(); }

absl::Status EngineHost::Impl::StartFrames() {
  const EngineSchema& schema = engine_->schema();
  TANDEM_ASSIGN_OR_RETURN(auto writer,
                          FrameWriter::Create(side_.region().frame_ring(),
                                              side_.region().frame_geometry()));
  frames_ = std::make_unique<FrameThread>(
      engine_->frames(), *options_.frames, schema.num_envs,
      schema.description.has_rewards, std::move(writer),
      FrameThread::Links{
          .watched = [this] { return side_.region().FramesWatched(); },
          .wake_step_thread = [this] { side_.WakeStepThread(); },
          .answer = [this](uint32_t request) { side_.AnswerFrame(request); },
          .log = [this](absl::string_view line) { Log(line); },
          .own_run = [this] { return side_.OwnRun(); }});
  has_viewers_ = true;
  return absl::OkStatus();
}

absl::Status EngineHost::Impl::StartImages() {
  TANDEM_ASSIGN_OR_RETURN(
      images_, ImageThread::Create(engine_->images(), *options_.images,
                                   engine_->schema().num_envs,
                                   side_.arrays().images, options_.stopping));
  return absl::OkStatus();
}

void EngineHost::Impl::Run() {
  assert(synchronous_ != nullptr);  // a ticked engine takes its work by Next
  // relaxed: a flag for display; it publishes no other data.
  running_.store(true, std::memory_order_relaxed);
  for (;;) {
    const EngineEvent event = side_.Next(NextDue());
    if (event == EngineEvent::kStopRequested) break;
    Serve(event);
    BeginDueStep();
  }
  // relaxed: as above.
  running_.store(false, std::memory_order_relaxed);
}

void EngineHost::Impl::Start() {
  // relaxed: as in Run. True before the thread runs, so that IsRunning is true
  // at once.
  running_.store(true, std::memory_order_relaxed);
  thread_ = std::thread([this] { Run(); });
}

void EngineHost::Impl::Stop() {
  side_.RequestStop();
  if (thread_.joinable()) thread_.join();
}

bool EngineHost::Impl::IsRunning() const {
  // relaxed: as in Run.
  return running_.load(std::memory_order_relaxed);
}

bool EngineHost::Impl::Poll() {
  assert(synchronous_ != nullptr);  // as in Run
  const EngineEvent event = side_.Poll();
  Serve(event);
  BeginDueStep();
  return event != EngineEvent::kTimedOut &&
         event != EngineEvent::kStopRequested;
}

const EngineWork* EngineHost::Impl::Next(Deadline deadline) {
  assert(synchronous_ == nullptr);  // the host calls the others itself
  // A client that keeps calling does not hold the engine up.
  constexpr int kMostTurns = 8;
  if (taken_) {
    callers_.ServeBesideExchange();
    return nullptr;
  }
  if (!opening_.ok() || side_.StopRequested()) return nullptr;
  for (int turns = 1; runner_.work() == nullptr; ++turns) {
    const Deadline due = NextDue();
    const EngineEvent event =
        side_.Next(due.at_ns() < deadline.at_ns() ? due : deadline);
    if (event == EngineEvent::kStopRequested ||
        event == EngineEvent::kInterrupted) {
      return nullptr;
    }
    Serve(event);
    BeginDueStep();
    if (runner_.work() != nullptr) break;
    if (engine_->HasOtherWork()) return nullptr;
    const bool idle = event == EngineEvent::kTimedOut || turns >= kMostTurns;
    if (idle && deadline.PassedAt(MonotonicNanos())) return nullptr;
  }
  taken_ = true;
  return runner_.work();
}

absl::Status EngineHost::Impl::Done(const absl::Status& result) {
  assert(synchronous_ == nullptr);  // as in Next
  if (!taken_) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "done: expected work that Next has returned, found none; "
                     "call Next first, and Done once for each work");
  }
  taken_ = false;
  runner_.Done(result);
  if (runner_.work() == nullptr) FinishWork();
  return opening_;
}

absl::Status EngineHost::Impl::EnableService(Service service, bool enabled) {
  return callers_.EnableLater(service, enabled);
}

void EngineHost::Impl::Serve(EngineEvent event) {
  switch (event) {
    case EngineEvent::kExchange:
      if (!simulation_.Admits(side_.kind())) {
        side_.HoldExchange();
        return;
      }
      runner_.Begin(side_.kind(), side_.autoreset_mode());
      StartWork(Purpose::kExchange);
      return;
    case EngineEvent::kFrameWanted:
      ServeViewers();
      callers_.Serve();
      return;
    case EngineEvent::kRpcs:
      callers_.Serve();
      return;
    case EngineEvent::kAttendants:
      callers_.ServeAttendants();
      return;
    case EngineEvent::kClientArrived:
      StartAnew(Purpose::kArrival);
      return;
    case EngineEvent::kClientLeft:
      StartAnew(Purpose::kDeparture);
      return;
    case EngineEvent::kBrokenClient:
      Log(side_.BrokenClientText());
      return;
    case EngineEvent::kTimedOut:
      callers_.Serve();
      return;
    case EngineEvent::kInterrupted:
    case EngineEvent::kStopRequested:
      return;
  }
}

// A synchronous engine does the runner's work now, any other one by Next.
void EngineHost::Impl::StartWork(Purpose purpose) {
  purpose_ = purpose;
  if (synchronous_ != nullptr) RunAll(&runner_, synchronous_);
  if (runner_.work() == nullptr) FinishWork();
}

// After a failure the runner has no staged rows; so the engine has no states.
void EngineHost::Impl::DiscardStates() {
  StatePort* const states = engine_->ports().states;
  if (states == nullptr) return;
  for (uint32_t env = 0; env < engine_->schema().num_envs; ++env) {
    states->Discard(env);
  }
}

// All of the work has been done, or the engine has failed.
void EngineHost::Impl::FinishWork() {
  if (!runner_.status().ok()) DiscardStates();
  switch (std::exchange(purpose_, Purpose::kNone)) {
    case Purpose::kNone:
      return;
    case Purpose::kOpening:
      opening_ = EndOpening();
      return;
    case Purpose::kExchange:
      EndExchange();
      return;
    case Purpose::kArrival:
      EndArrival(EndResetAll());
      return;
    case Purpose::kDeparture:
      EndDeparture(EndResetAll());
      return;
    case Purpose::kDueStep:
      EndDueStep();
      return;
    case Purpose::kServiceReset:
      simulation_.EndReset(runner_.status());
      return;
  }
}

absl::Status EngineHost::Impl::EndOpening() {
  TANDEM_RETURN_IF_ERROR(EndResetAll());
  if (options_.frames) {
    TANDEM_RETURN_IF_ERROR(StartFrames());
  }
  TANDEM_RETURN_IF_ERROR(side_.Open());
  if (options_.opened) options_.opened(side_.region().name(), *side_.mapping());
  return absl::OkStatus();
}

void EngineHost::Impl::EndExchange() {
  const ExchangeKind kind = side_.kind();
  absl::Status drawn;
  if (has_images_ && runner_.status().ok()) drawn = DrawImages(kind);
  // Also after a failure: the client's streams wait for what was written.
  if (gpu_ != nullptr) drawn.Update(gpu_->Record());
  const absl::Status& status = runner_.status().ok() ? drawn : runner_.status();
  if (status.ok()) {
    // Before Publish: after it the client owns the arrays.
    CountForViewers(side_.arrays(), kind == ExchangeKind::kStep);
    side_.Publish();
  } else {
    side_.Fail(ErrorCode::kEngineFailed, status.message());
  }
  if (!status.ok() || !last_failure_.ok()) LogFailure(status);
  // After Publish: the client already computes with its results.
  ServeViewers();
  simulation_.Served(kind);
  if (side_.HasRpcs() || side_.AttendantsRang() || !callers_.IsQuiet()) {
    callers_.ServeBesideExchange();
  }
}

void EngineHost::Impl::EndArrival(const absl::Status& status) {
  side_.AcknowledgeAttach(
      status.ok() ? status
                  : MakeError(ErrorCode::kEngineFailed, status.message()));
  Log(status.ok() ? "client attached"
                  : absl::StrCat("client refused: ", status.message()));
  if (status.ok()) callers_.ClientArrived();
  if (frames_ != nullptr) frames_->ClearClientState();
  if (scene_.IsWatched()) scene_.ClearClientState();
  ServeViewers();
}

void EngineHost::Impl::EndDeparture(const absl::Status& status) {
  Log(status.ok()
          ? "client left; environments reset"
          : absl::StrCat("client left; reset failed: ", status.message()));
  ServeViewers();
}

// Removes the effects of the last client before the next one starts.
void EngineHost::Impl::StartAnew(Purpose purpose) {
  callers_.ClientLeft();
  const bool fresh = fresh_at_ == simulation_.changes();
  simulation_.Restart();
  if (fresh) {
    fresh_at_ = simulation_.changes();
    if (purpose == Purpose::kArrival) {
      EndArrival(absl::OkStatus());
    } else {
      EndDeparture(absl::OkStatus());
    }
    return;
  }
  engine_->ClearClientState();
  fresh_at_.reset();
  runner_.BeginResetAll(std::nullopt);
  StartWork(purpose);
}

absl::Status EngineHost::Impl::EndResetAll() {
  absl::Status status = runner_.status();
  if (status.ok() && images_ != nullptr) status = images_->DrawAll();
  if (status.ok() && has_images_) side_.TagImages(side_.frame_seq());
  if (gpu_ != nullptr) status.Update(gpu_->Record());
  if (status.ok()) fresh_at_ = simulation_.changes();
  return status;
}

// Renders the environments whose observations this exchange has written, unless
// the engine has drawn them itself.
absl::Status EngineHost::Impl::DrawImages(ExchangeKind kind) {
  absl::Status status;
  if (images_ != nullptr) {
    status = kind == ExchangeKind::kStep
                 ? images_->DrawAll()
                 : images_->DrawFlagged(side_.arrays().resets);
  }
  if (status.ok()) side_.TagImages(side_.frame_seq() + 1);
  return status;
}

void EngineHost::Impl::BeginDueStep() {
  if (purpose_ == Purpose::kNone && simulation_.BeginDueStep()) {
    StartWork(Purpose::kDueStep);
  }
}

void EngineHost::Impl::EndDueStep() {
  simulation_.EndDueStep(runner_.status());
  LogFailure(runner_.status());
  if (!runner_.status().ok()) return;
  CountForViewers(runner_.accumulated_arrays(), true);
  ServeViewers();
  if (!callers_.IsQuiet()) callers_.Serve();
}

// The time of the next work if no event arrives.
Deadline EngineHost::Impl::NextDue() const {
  std::optional<int64_t> due = simulation_.DueNs();
  const std::optional<int64_t> then = callers_.DueNs();
  if (then) due = std::min(due.value_or(*then), *then);
  return due ? Deadline::At(*due) : Deadline::Infinite();
}

void EngineHost::Impl::CountForViewers(const StepArrays& arrays, bool stepped) {
  if (!has_viewers_) return;
  const CountedExchange exchange = {
      .stepped = stepped,
      .ended_are_reset = side_.autoreset_mode() == AutoresetMode::kSameStep,
      .resets = arrays.resets,
      .rewards = arrays.rewards,
      .dones = arrays.dones};
  if (frames_ != nullptr) frames_->Count(exchange);
  if (scene_.IsWatched()) scene_.Count(exchange);
}

void EngineHost::Impl::ServeViewers() {
  if (!has_viewers_) return;
  if (frames_ != nullptr) {
    frames_->Serve(side_.frame_seq(), side_.frame_request());
  }
  if (scene_.IsWatched()) scene_.Serve(side_.frame_seq());
}

// Logs equal failures in a row once.
void EngineHost::Impl::LogFailure(const absl::Status& status) {
  if (status.ok() && last_failure_.ok()) return;
  if (status != last_failure_ && !status.ok()) {
    Log(absl::StrCat("step failed: ", status.message()));
  }
  last_failure_ = status;
}

void EngineHost::Impl::Log(absl::string_view line) const {
  if (options_.log) options_.log(line);
}

}  // namespace tandem
