#include "transport/session/client_side.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "transport/memory/fork_guard.h"
#include "transport/memory/region_plan.h"
#include "transport/session/client_side_internal.h"
#include "transport/session/phase_word.h"

namespace tandem {
namespace {

constexpr uint32_t kExponent = 0x7F800000;

bool IsFinite(float value) {
  return (std::bit_cast<uint32_t>(value) & kExponent) != kExponent;
}

// Computed in lanes: at -O2 compilers do not vectorise the plain loop, which is
// six times slower.
bool AllFinite(std::span<const float> values) {
  using Lanes = uint32_t __attribute__((vector_size(16)));
  constexpr size_t kLanes = sizeof(Lanes) / sizeof(float);
  size_t i = 0;
  bool bad = false;
  if (values.size() >= kLanes) {
    auto any_bad = Lanes{} != Lanes{};
    for (; i + kLanes <= values.size(); i += kLanes) {
      Lanes bits;
      std::memcpy(&bits, &values[i], sizeof(bits));
      any_bad |= (bits & kExponent) == kExponent;
    }
    for (size_t lane = 0; lane < kLanes; ++lane) bad |= any_bad[lane] != 0;
  }
  for (; i < values.size(); ++i) bad |= !IsFinite(values[i]);
  return !bad;
}

}  // namespace

absl::StatusOr<ClientSide> ClientSide::Attach(absl::string_view name,
                                              const Options& options) {
  const Deadline deadline = Deadline::After(options.timeout_secs);
  for (;;) {
    TANDEM_ASSIGN_OR_RETURN(
        AttachedRegion region,
        OpenByDeadline(name, options.interrupted, deadline));
    ClientSide client(name, options, std::move(region));
    const absl::Status status = client.RequestAttach(deadline);
    if (status.ok()) return client;
    // The engine died before its answer; another engine may be starting.
    if (CodeOf(status) != ErrorCode::kPeerGone) return status;
  }
}

ClientSide::Session::Session(AttachedRegion attached, WaitStrategy wait)
    : region(std::move(attached)),
      arrays(StepArrays::Of(*region.mapping(), region.plan(), region.fields())),
      own_bell(&region.mapping()->header()->client_doorbell,
               &region.mapping()->header()->client_sleepers),
      engine_bell(&region.mapping()->header()->engine_doorbell,
                  &region.mapping()->header()->engine_sleepers),
      waiter(own_bell, wait),
      chosen((region.plan().feature_bits & kFeatureSubsets) != 0
                 ? region.plan().num_envs
                 : 0) {}

ClientSide::ClientSide(absl::string_view name, const Options& options,
                       AttachedRegion region)
    : name_(name.data(), name.size()),
      options_(options),
      born_in_(ForkCount()),
      session_(std::move(region), options.wait),
      in_use_(std::make_unique<std::atomic<bool>>(false)) {}

ClientSide::ClientSide(ClientSide&&) noexcept = default;

ClientSide::~ClientSide() {
  if (in_use_ != nullptr) Leave();
}

absl::Status ClientSide::RequestAttach(Deadline deadline) {
  LrbcHeader* const shared = header();
  if (!session_.region.AcquireLock(kClientLockByte)) {
    return MakeError(
        ErrorCode::kAlreadyAttached,
        absl::StrCat("region '", name_, "' has a client already (pid ",
                     // relaxed: a label for people.
                     shared->client_pid.load(std::memory_order_relaxed),
                     "); close that one, or start another engine"));
  }
  // From here on this process writes the client's words.
  Become(State::kIdle);
  session_.sent_at_ns = session_.waiter.NowNs();
  session_.own_bell.ClearSleepers();
  ClearStepTimes(&shared->client_round_trips);
  // relaxed: labels for display.
  shared->client_pid.store(static_cast<uint32_t>(getpid()),
                           std::memory_order_relaxed);
  SetPhase(Phase::kAttaching, session_.sent_at_ns);
  // relaxed: attach_request publishes it.
  shared->autoreset_mode.store(static_cast<uint32_t>(options_.autoreset),
                               std::memory_order_relaxed);
  // A new number, and not one that the engine has answered before.
  // relaxed: our own word, and one that is only compared.
  session_.attach_number =
      shared->attach_request.load(std::memory_order_relaxed) + 1;
  if (session_.attach_number ==
      shared->attach_ack.load(std::memory_order_relaxed)) {
    ++session_.attach_number;
  }
  // SYNC(attach.hello): release; the mode before the request.
  shared->attach_request.store(session_.attach_number,
                               std::memory_order_release);
  session_.engine_bell.NotifyIfWaiting();

  Watch watch(session_.region, options_.interrupted, 0,
              /*judges_frames=*/false);
  const ErrorCode code = session_.waiter.Until(
      [&] {
        // SYNC(attach.welcome): acquire; the answer, then what it publishes.
        return shared->attach_ack.load(std::memory_order_acquire) ==
               session_.attach_number;
      },
      deadline, watch);
  absl::Status status = code == ErrorCode::kOk ? EngineStatus() : Explain(code);
  if (!status.ok()) {
    Leave();
    return status;
  }
  // relaxed: attach_ack published it.
  session_.seq = shared->frame_seq.load(std::memory_order_relaxed);
  // relaxed: our own word, equal to that unless the peer overwrote it.
  shared->action_seq.store(session_.seq, std::memory_order_relaxed);
  session_.engine_steps_at_attach = SnapshotOf(shared->engine_step_times);
  CloseLanes();
  session_.received_at_ns = session_.waiter.NowNs();
  SetPhase(Phase::kIdle, session_.received_at_ns);
  return absl::OkStatus();
}

ErrorCode ClientSide::Refusal() const {
  return born_in_ == ForkCount() ? ErrorCode::kConcurrentUse
                                 : ErrorCode::kForkedChild;
}

ErrorCode ClientSide::MayUse() const {
  if (born_in_ != ForkCount()) return ErrorCode::kForkedChild;
  if (state() == State::kClosed) return ErrorCode::kClientClosed;
  return ErrorCode::kOk;
}

ErrorCode ClientSide::MaySend() const {
  if (state() == State::kIdle && born_in_ == ForkCount()) return ErrorCode::kOk;
  if (const ErrorCode code = MayUse(); code != ErrorCode::kOk) return code;
  return state() == State::kPending || state() == State::kLanes
             ? ErrorCode::kStepPending
             : lost_to_;
}

ErrorCode ClientSide::Send(std::span<const float> actions) {
  const InUse in_use(this);
  return in_use.refused() ? Refusal() : PostActions(actions);
}

ErrorCode ClientSide::Step(std::span<const float> actions, double timeout_secs,
                           absl::FunctionRef<void()> on_long_wait) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  const ErrorCode code = PostActions(actions);
  if (code != ErrorCode::kOk) return code;
  return AwaitResults(Deadline::After(timeout_secs, session_.sent_at_ns),
                      on_long_wait);
}

ErrorCode ClientSide::PostActions(std::span<const float> actions) {
  if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  if (actions.size() != session_.arrays.actions.size() || !AllFinite(actions)) {
    return CheckActions(actions, session_.arrays.num_envs);  // for Explain
  }
  // Without float32 rows the caller has written fields of actions in place.
  if (!actions.empty() && !IsInPlace(actions)) {
    std::memmove(session_.arrays.actions.data(), actions.data(),
                 actions.size_bytes());
  }
  Post(ExchangeKind::kStep);
  return ErrorCode::kOk;
}

// Whether these are the finite actions of `envs` environments.
ErrorCode ClientSide::CheckActions(std::span<const float> actions,
                                   size_t envs) {
  bad_action_ = -1;
  envs_of_actions_ = envs;
  if (actions.size() != envs * session_.arrays.act_size) {
    return ErrorCode::kInvalidAction;
  }
  const auto bad = std::ranges::find_if_not(actions, IsFinite);
  if (bad == actions.end()) return ErrorCode::kOk;
  bad_action_ = bad - actions.begin();
  bad_value_ = *bad;
  return ErrorCode::kInvalidAction;
}

ErrorCode ClientSide::SendReset(
    std::span<const int64_t> env_ids,
    std::span<const std::optional<uint64_t>> seeds) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  const ErrorCode code = FlagResets(env_ids, seeds);
  if (code == ErrorCode::kOk) Post(ExchangeKind::kResetOnly);
  return code;
}

// Sets no flag in case of an error.
ErrorCode ClientSide::FlagResets(
    std::span<const int64_t> env_ids,
    std::span<const std::optional<uint64_t>> seeds) {
  if (!seeds.empty() && seeds.size() != env_ids.size()) {
    return ErrorCode::kInvalidArgument;
  }
  for (const int64_t env : env_ids) {
    if (env < 0 || env >= session_.arrays.num_envs)
      return ErrorCode::kInvalidArgument;
  }
  for (size_t k = 0; k < env_ids.size(); ++k) {
    const size_t at = static_cast<size_t>(env_ids[k]);
    session_.arrays.resets[at] = kResetRequested;
    if (!seeds.empty() && seeds[k]) {
      session_.arrays.resets[at] |= kResetSeeded;
      session_.arrays.reset_seeds[at] = *seeds[k];
    }
  }
  return ErrorCode::kOk;
}

void ClientSide::Post(ExchangeKind kind) {
  LrbcHeader* const shared = header();
  // relaxed: action_seq publishes it.
  StoreIfOther(&shared->exchange_kind, static_cast<uint32_t>(kind));
  // SYNC(lockstep.action): release; actions, resets and kind before the number.
  shared->action_seq.store(session_.seq + 1, std::memory_order_release);
  // An engine that spins runs already; the statistics are updated in parallel.
  session_.sent_at_ns = session_.waiter.NowNs();
  session_.engine_bell.NotifyIfWaiting();
  AddTo(&session_.policy_ns,
        static_cast<uint64_t>(session_.sent_at_ns - session_.received_at_ns));
  SetPhase(Phase::kWaiting, session_.sent_at_ns);
  Become(State::kPending);
}

ErrorCode ClientSide::Recv(Deadline deadline,
                           absl::FunctionRef<void()> on_long_wait) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (const ErrorCode code = MayUse(); code != ErrorCode::kOk) return code;
  if (state() == State::kLost) return lost_to_;
  if (state() != State::kPending) return ErrorCode::kNoStepPending;
  return AwaitResults(deadline, on_long_wait);
}

ErrorCode ClientSide::AwaitResults(Deadline deadline,
                                   absl::FunctionRef<void()> on_long_wait) {
  LrbcHeader* const shared = header();
  Watch watch(session_.region, options_.interrupted, session_.seq,
              /*judges_frames=*/true, on_long_wait);
  ErrorCode code =
      session_.waiter.Until([this] { return HasResults(); }, deadline, watch);
  if (code != ErrorCode::kOk) {
    if (code == ErrorCode::kStepTimeout) {
      code = AwaitPause([this] { return HasResults(); }, deadline, watch);
    }
    if (code == ErrorCode::kPeerGone || code == ErrorCode::kBrokenPeer) {
      return Lost(code);
    }
    if (code != ErrorCode::kOk) return code;
  }
  if (IsAnotherSession()) return Lost(ErrorCode::kBrokenPeer);
  ++session_.seq;
  AddTo(&session_.exchanges, 1);
  Become(State::kIdle);
  session_.received_at_ns = session_.waiter.CameAtNs();
  SetPhase(Phase::kIdle, session_.received_at_ns);
  RecordStepTime(
      &shared->client_round_trips,
      static_cast<uint64_t>(session_.received_at_ns - session_.sent_at_ns));
  // relaxed: frame_seq published it.
  const auto status = static_cast<ErrorCode>(
      shared->exchange_status.load(std::memory_order_relaxed));
  if (status == ErrorCode::kOk) return status;
  unsupported_ = nullptr;
  session_.failed_lane_of = -1;
  return status == ErrorCode::kBrokenPeer ? Lost(status) : EngineCode(status);
}

bool ClientSide::HasResults() const {
  // SYNC(lockstep.frame): acquire; the number, then the results.
  return header()->frame_seq.load(std::memory_order_acquire) ==
         session_.seq + 1;
}

ErrorCode ClientSide::AwaitFrame(Deadline deadline) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  if (!has_frames()) return Unsupported("expected an engine with frames");
  LrbcHeader* const shared = header();
  session_.frame_asked_at_ns = MonotonicNanos();
  // Another number than the last one, and than the last answer.
  // relaxed: our own word, and one that is only compared.
  uint32_t request = shared->frame_request.load(std::memory_order_relaxed) + 1;
  if (request == shared->frame_answer.load(std::memory_order_relaxed)) {
    ++request;
  }
  // relaxed: it publishes no data; it requests the engine's own state.
  shared->frame_request.store(request, std::memory_order_relaxed);
  session_.engine_bell.NotifyIfWaiting();
  Watch watch(session_.region, options_.interrupted, session_.seq,
              /*judges_frames=*/false);
  const ErrorCode code = session_.waiter.Until(
      [&] {
        // SYNC(frames.answer): acquire; the number, then the frame.
        return shared->frame_answer.load(std::memory_order_acquire) == request;
      },
      deadline, watch);
  return code == ErrorCode::kPeerGone ? Lost(code) : code;
}

ErrorCode ClientSide::Lost(ErrorCode code) {
  Become(State::kLost);
  lost_to_ = code;
  return code;
}

absl::Status ClientSide::Reconnect(double timeout_secs) {
  const InUse in_use(this);
  if (in_use.refused()) return Explain(Refusal());
  if (const ErrorCode code = MayUse(); code != ErrorCode::kOk) {
    return Explain(code);
  }
  Leave();
  Become(State::kLost);
  lost_to_ = ErrorCode::kClientClosed;
  Options options = options_;
  options.timeout_secs = timeout_secs;
  TANDEM_ASSIGN_OR_RETURN(ClientSide next, Attach(name_, options));
  TANDEM_RETURN_IF_ERROR(CheckSameSchema(plan(), next.plan()));
  session_ = std::move(next.session_);
  Become(State::kIdle);
  next.in_use_.reset();  // moved from: its destructor has no effect
  return absl::OkStatus();
}

ErrorCode ClientSide::Close() {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (born_in_ != ForkCount()) return ErrorCode::kForkedChild;
  Leave();
  Become(State::kClosed);
  return ErrorCode::kOk;
}

void ClientSide::Leave() {
  if (born_in_ != ForkCount() || !session_.region.HoldsLock()) return;
  // SYNC(attach.leave): release; our last reads before the engine may reset.
  header()->client_phase.store(PackPhase(Phase::kStopped, MonotonicNanos()),
                               std::memory_order_release);
  session_.region.ReleaseLock();
  session_.engine_bell.NotifyIfWaiting();
}

ClientStats ClientSide::Stats() const {
  // relaxed: statistics, of which another thread may be the writer.
  return {.exchanges = session_.exchanges.load(std::memory_order_relaxed),
          .policy_ns = session_.policy_ns.load(std::memory_order_relaxed),
          .round_trips = SnapshotOf(header()->client_round_trips),
          .engine_steps = SnapshotOf(header()->engine_step_times)
                              .Since(session_.engine_steps_at_attach)};
}

void ClientSide::SetPhase(Phase phase, int64_t now_ns) {
  // relaxed: for display; no decision depends on it.
  header()->client_phase.store(PackPhase(phase, now_ns),
                               std::memory_order_relaxed);
}

}  // namespace tandem
