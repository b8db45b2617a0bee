// Length: each call of a trainer.
#include "transport/client_side.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/fork_guard.h"
#include "base/os/machine.h"
#include "base/os/process_handle.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/ring_header.h"
#include "transport/frames/image_slot.h"
#include "transport/memory/region_plan.h"
#include "transport/ring/ring.h"
#include "transport/session/client_core.h"
#include "transport/session/make_step_arrays.h"
#include "transport/session/open_region.h"
#include "transport/session/own_run.h"

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

ClientCore::Session::Session(AttachedRegion attached, WaitStrategy wait)
    : region(std::move(attached)),
      arrays(MakeStepArrays(*region.mapping(), region.plan(), region.fields())),
      own_bell(&region.mapping()->header()->client_doorbell,
               &region.mapping()->header()->client_sleepers),
      engine_bell(&region.mapping()->header()->engine_doorbell,
                  &region.mapping()->header()->engine_sleepers),
      waiter(own_bell, wait),
      chosen((region.plan().feature_bits & kFeatureSubsets) != 0
                 ? region.plan().num_envs
                 : 0) {}

ClientCore::ClientCore(absl::string_view region_name,
                       const ClientSide::Options& given, AttachedRegion region)
    : name(region_name.data(), region_name.size()),
      options(given),
      born_in(ForkCount()),
      session(std::move(region), given.wait) {}

ErrorCode ClientCore::Refusal() const {
  return born_in == ForkCount() ? ErrorCode::kConcurrentUse
                                : ErrorCode::kForkedChild;
}

absl::Status ClientCore::RequestAttach(Deadline deadline) {
  LrbcHeader* const shared = header();
  if (!session.region.AcquireLock(kClientLockByte)) {
    return MakeError(
        ErrorCode::kAlreadyAttached,
        absl::StrCat("region '", name, "' has a client already (pid ",
                     // relaxed: a label for people.
                     shared->client_pid.load(std::memory_order_relaxed),
                     "); close that one, or start another engine"));
  }
  // From here on this process writes the client's words.
  Become(State::kIdle);
  session.sent_at_ns = session.waiter.NowNs();
  session.own_bell.ClearSleepers();
  ClearStepTimes(&shared->client_round_trips);
  // relaxed: labels for display.
  shared->client_pid.store(ProcessId(), std::memory_order_relaxed);
  SetPhase(Phase::kAttaching, session.sent_at_ns);
  // relaxed: attach_request publishes it.
  shared->autoreset_mode.store(static_cast<uint32_t>(options.autoreset),
                               std::memory_order_relaxed);
  // A new number, and not one that the engine has answered before.
  // relaxed: our own word, and one that is only compared.
  session.attach_number =
      shared->attach_request.load(std::memory_order_relaxed) + 1;
  if (session.attach_number ==
      shared->attach_ack.load(std::memory_order_relaxed)) {
    ++session.attach_number;
  }
  const bool knows_cores = (plan().feature_bits & kFeatureCoreSharing) != 0;
  if (knows_cores) StoreIfOther(&shared->client_core, 0);  // the last client's
  session.shares_core =
      knows_cores && options.share_core && options.wait != WaitStrategy::kSpin;
  // SYNC(attach.hello): release; the mode before the request.
  shared->attach_request.store(session.attach_number,
                               std::memory_order_release);
  session.engine_bell.NotifyIfWaiting();

  ClientWatch watch(session.region, options.interrupted, 0,
                    /*judges_frames=*/false);
  const ErrorCode code = session.waiter.Until(
      [&] {
        // SYNC(attach.welcome): acquire; the answer, then what it publishes.
        return shared->attach_ack.load(std::memory_order_acquire) ==
               session.attach_number;
      },
      deadline, watch);
  absl::Status status = code == ErrorCode::kOk ? EngineStatus() : Explain(code);
  if (!status.ok()) {
    Leave();
    return status;
  }
  // relaxed: attach_ack published it.
  session.seq = shared->frame_seq.load(std::memory_order_relaxed);
  // relaxed: our own word, equal to that unless the peer overwrote it.
  shared->action_seq.store(session.seq, std::memory_order_relaxed);
  session.engine_steps_at_attach = SnapshotOf(shared->engine_step_times);
  lanes.CloseAll();
  session.received_at_ns = session.waiter.NowNs();
  SetPhase(Phase::kIdle, session.received_at_ns);
  return absl::OkStatus();
}

ErrorCode ClientCore::MayUse() const {
  if (born_in != ForkCount()) return ErrorCode::kForkedChild;
  if (state() == State::kClosed) return ErrorCode::kClientClosed;
  return ErrorCode::kOk;
}

ErrorCode ClientCore::MaySend() const {
  if (state() == State::kIdle && born_in == ForkCount()) return ErrorCode::kOk;
  if (const ErrorCode code = MayUse(); code != ErrorCode::kOk) return code;
  return state() == State::kPending || state() == State::kLanes
             ? ErrorCode::kStepPending
             : lost_to;
}

ErrorCode ClientCore::PostActions(std::span<const float> actions,
                                  AfterSend after) {
  if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  if (actions.size() != session.arrays.actions.size() || !AllFinite(actions)) {
    return CheckActions(actions, session.arrays.num_envs);  // for Explain
  }
  // Without float32 rows the caller has written fields of actions in place.
  if (!actions.empty() && !IsInPlace(actions)) {
    std::memmove(session.arrays.actions.data(), actions.data(),
                 actions.size_bytes());
  }
  Post(ExchangeKind::kStep, after);
  return ErrorCode::kOk;
}

ErrorCode ClientCore::CheckActions(std::span<const float> actions,
                                   size_t envs) {
  bad_action = -1;
  envs_of_actions = envs;
  if (actions.size() != envs * session.arrays.act_size) {
    return ErrorCode::kInvalidAction;
  }
  const auto bad = std::ranges::find_if_not(actions, IsFinite);
  if (bad == actions.end()) return ErrorCode::kOk;
  bad_action = bad - actions.begin();
  bad_value = *bad;
  return ErrorCode::kInvalidAction;
}

ErrorCode ClientCore::CheckRows(size_t first_env, size_t envs) {
  const size_t of_each = session.arrays.act_size;
  const ErrorCode code = CheckActions(
      session.arrays.actions.subspan(first_env * of_each, envs * of_each),
      envs);
  envs_of_actions = session.arrays.num_envs;
  if (bad_action >= 0) bad_action += static_cast<int64_t>(first_env * of_each);
  return code;
}

ErrorCode ClientCore::FlagResets(
    std::span<const int64_t> env_ids,
    std::span<const std::optional<uint64_t>> seeds) {
  if (!seeds.empty() && seeds.size() != env_ids.size()) {
    return ErrorCode::kInvalidArgument;
  }
  for (const int64_t env : env_ids) {
    if (env < 0 || env >= session.arrays.num_envs)
      return ErrorCode::kInvalidArgument;
  }
  for (size_t k = 0; k < env_ids.size(); ++k) {
    const size_t at = static_cast<size_t>(env_ids[k]);
    session.arrays.resets[at] = kResetRequested;
    if (!seeds.empty() && seeds[k]) {
      session.arrays.resets[at] |= kResetSeeded;
      session.arrays.reset_seeds[at] = *seeds[k];
    }
  }
  return ErrorCode::kOk;
}

void ClientCore::Post(ExchangeKind kind, AfterSend after) {
  LrbcHeader* const shared = header();
  // relaxed: action_seq publishes it.
  StoreIfOther(&shared->exchange_kind, static_cast<uint32_t>(kind));
  // SYNC(lockstep.action): release; actions, resets and kind before the number.
  shared->action_seq.store(session.seq + 1, std::memory_order_release);
  // An engine that spins runs already; the statistics are updated in parallel.
  session.sent_at_ns = session.waiter.NowNs();
  if (after == AfterSend::kComputes) NameNoCore();
  // relaxed: a hint. Without a sleeper the engine may be about to sleep there.
  if (session.engine_bell.AnyWaiting() ||
      shared->engine_core.load(std::memory_order_relaxed) != 0) {
    NotifyEngine(after);
  }
  AddTo(&session.policy_ns,
        static_cast<uint64_t>(session.sent_at_ns - session.received_at_ns));
  SetPhase(Phase::kWaiting, session.sent_at_ns);
  Become(State::kPending);
}

// Not inline: an engine that spins needs no notice.
[[gnu::noinline]] void ClientCore::NotifyEngine(AfterSend after) {
  LrbcHeader* const shared = header();
  if (session.shares_core && IsRealTimeThread()) {
    // It would keep the engine from its core while it computes.
    StoreIfOther(&shared->client_core, 0);
  } else if (session.shares_core) {
    const int core = CurrentCore();
    const auto word = static_cast<uint32_t>(core + 1);
    if (after == AfterSend::kWaits) StoreIfOther(&shared->client_core, word);
    // relaxed: a hint.
    if (shared->engine_core.load(std::memory_order_relaxed) == word) {
      session.shared_core = core;
    }
  }
  session.engine_bell.NotifyIfWaiting();
}

ErrorCode ClientCore::AwaitResults(Deadline deadline,
                                   absl::FunctionRef<void()> on_long_wait) {
  LrbcHeader* const shared = header();
  ClientWatch watch(session.region, options.interrupted, session.seq,
                    /*judges_frames=*/true, on_long_wait);
  int shared_core = std::exchange(session.shared_core, -1);
  if (shared_core >= 0) {
    // This may be another thread, or a later one, than sent the request.
    if (shared_core != CurrentCore()) shared_core = -1;
    AddTo(&session.shared_core_exchanges, 1);
  }
  ErrorCode code = session.waiter.Until([this] { return HasResults(); },
                                        deadline, watch, shared_core);
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
  ++session.seq;
  AddTo(&session.exchanges, 1);
  Become(State::kIdle);
  session.received_at_ns = session.waiter.CameAtNs();
  SetPhase(Phase::kIdle, session.received_at_ns);
  RecordStepTime(
      &shared->client_round_trips,
      static_cast<uint64_t>(session.received_at_ns - session.sent_at_ns));
  // relaxed: frame_seq published it.
  const auto status = static_cast<ErrorCode>(
      shared->exchange_status.load(std::memory_order_relaxed));
  if (status == ErrorCode::kOk) return status;
  unsupported = nullptr;
  session.failed_lane_of = -1;
  return status == ErrorCode::kBrokenPeer ? Lost(status) : EngineCode(status);
}

bool ClientCore::HasResults() const {
  // SYNC(lockstep.frame): acquire; the number, then the results.
  return header()->frame_seq.load(std::memory_order_acquire) == session.seq + 1;
}

ErrorCode ClientCore::Lost(ErrorCode code) {
  Become(State::kLost);
  lost_to = code;
  return code;
}

void ClientCore::Leave() {
  if (born_in != ForkCount() || !session.region.HoldsLock()) return;
  // SYNC(attach.leave): release; our last reads before the engine may reset.
  header()->client_phase.store(PackPhase(Phase::kStopped, MonotonicNanos()),
                               std::memory_order_release);
  session.region.ReleaseLock();
  session.engine_bell.NotifyIfWaiting();
}

absl::StatusOr<ClientSide> ClientSide::Attach(absl::string_view name,
                                              const Options& options) {
  const Deadline deadline = Deadline::After(options.timeout_secs);
  for (;;) {
    TANDEM_ASSIGN_OR_RETURN(
        AttachedRegion region,
        OpenByDeadline(name, options.interrupted, deadline));
    ClientSide client(
        std::make_unique<ClientCore>(name, options, std::move(region)));
    const absl::Status status = client.core_->RequestAttach(deadline);
    if (status.ok()) return client;
    // The engine died before its answer; another engine may be starting.
    if (CodeOf(status) != ErrorCode::kPeerGone) return status;
  }
}

ClientSide::ClientSide(std::unique_ptr<ClientCore> core)
    : core_(std::move(core)) {}
ClientSide::ClientSide(ClientSide&&) noexcept = default;

ClientSide::~ClientSide() {
  if (core_ != nullptr) core_->Leave();
}

ErrorCode ClientSide::Send(std::span<const float> actions, AfterSend after) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  return in_use.refused() ? c.Refusal() : c.PostActions(actions, after);
}

ErrorCode ClientSide::Step(std::span<const float> actions, double timeout_secs,
                           absl::FunctionRef<void()> on_long_wait) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return c.Refusal();
  const ErrorCode code = c.PostActions(actions, AfterSend::kWaits);
  if (code != ErrorCode::kOk) return code;
  return c.AwaitResults(Deadline::After(timeout_secs, c.session.sent_at_ns),
                        on_long_wait);
}

ErrorCode ClientSide::Send(std::span<const float> actions,
                           std::span<const int64_t> env_ids) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return c.Refusal();
  if (const ErrorCode code = c.MaySend(); code != ErrorCode::kOk) return code;
  const StepArrays& arrays = c.session.arrays;
  std::vector<uint8_t>& chosen_envs = c.session.chosen;
  if (chosen_envs.empty()) {
    return c.Unsupported(
        "subsets: expected an engine that knows them, found one that steps all "
        "environments; nothing was sent");
  }
  const bool in_place = c.IsInPlace(actions);
  if (!in_place) {
    const ErrorCode code = c.CheckActions(actions, env_ids.size());
    if (code != ErrorCode::kOk) return code;
  }
  std::ranges::fill(chosen_envs, uint8_t{0});
  for (const int64_t env : env_ids) {
    if (env < 0 || env >= arrays.num_envs) return ErrorCode::kInvalidArgument;
    uint8_t& chosen = chosen_envs[static_cast<size_t>(env)];
    if (chosen != 0) return ErrorCode::kInvalidArgument;
    chosen = 1;
    if (!in_place) continue;
    const ErrorCode code = c.CheckRows(static_cast<size_t>(env), 1);
    if (code != ErrorCode::kOk) return code;
  }
  for (size_t k = 0; k < env_ids.size() && !in_place; ++k) {
    const std::span<const float> row =
        actions.subspan(k * arrays.act_size, arrays.act_size);
    std::ranges::copy(
        row, arrays.actions.begin() + env_ids[k] * int64_t{arrays.act_size});
  }
  for (size_t env = 0; env < chosen_envs.size(); ++env) {
    if (chosen_envs[env] == 0) arrays.resets[env] = kSkip;
  }
  c.Post(ExchangeKind::kStep, AfterSend::kComputes);
  return ErrorCode::kOk;
}

ErrorCode ClientSide::SendReset(
    std::span<const int64_t> env_ids,
    std::span<const std::optional<uint64_t>> seeds) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return c.Refusal();
  if (const ErrorCode code = c.MaySend(); code != ErrorCode::kOk) return code;
  const ErrorCode code = c.FlagResets(env_ids, seeds);
  if (code == ErrorCode::kOk) {
    c.Post(ExchangeKind::kResetOnly, AfterSend::kComputes);
  }
  return code;
}

ErrorCode ClientSide::Recv(Deadline deadline,
                           absl::FunctionRef<void()> on_long_wait) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return c.Refusal();
  if (const ErrorCode code = c.MayUse(); code != ErrorCode::kOk) return code;
  if (c.state() == ClientCore::State::kLost) return c.lost_to;
  if (c.state() != ClientCore::State::kPending) {
    return ErrorCode::kNoStepPending;
  }
  return c.AwaitResults(deadline, on_long_wait);
}

ErrorCode ClientSide::AwaitFrame(Deadline deadline) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return c.Refusal();
  if (const ErrorCode code = c.MaySend(); code != ErrorCode::kOk) return code;
  if (!has_frames()) return c.Unsupported("expected an engine with frames");
  LrbcHeader* const shared = c.header();
  c.session.frame_asked_at_ns = MonotonicNanos();
  // Another number than the last one, and than the last answer.
  // relaxed: our own word, and one that is only compared.
  uint32_t request = shared->frame_request.load(std::memory_order_relaxed) + 1;
  if (request == shared->frame_answer.load(std::memory_order_relaxed)) {
    ++request;
  }
  // relaxed: it publishes no data; it requests the engine's own state.
  shared->frame_request.store(request, std::memory_order_relaxed);
  c.session.engine_bell.NotifyIfWaiting();
  ClientWatch watch(c.session.region, c.options.interrupted, c.session.seq,
                    /*judges_frames=*/false);
  const ErrorCode code = c.session.waiter.Until(
      [&] {
        // SYNC(frames.answer): acquire; the number, then the frame.
        return shared->frame_answer.load(std::memory_order_acquire) == request;
      },
      deadline, watch);
  return code == ErrorCode::kPeerGone ? c.Lost(code) : code;
}

absl::Status ClientSide::Reconnect(double timeout_secs) {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return Explain(c.Refusal());
  if (const ErrorCode code = c.MayUse(); code != ErrorCode::kOk) {
    return Explain(code);
  }
  c.Leave();
  c.Become(ClientCore::State::kLost);
  c.lost_to = ErrorCode::kClientClosed;
  Options options = c.options;
  options.timeout_secs = timeout_secs;
  TANDEM_ASSIGN_OR_RETURN(ClientSide next, Attach(c.name, options));
  TANDEM_RETURN_IF_ERROR(CheckSameSchema(plan(), next.plan()));
  c.session = std::move(next.core_->session);
  c.Become(ClientCore::State::kIdle);
  next.core_.reset();  // its destructor has no effect
  return absl::OkStatus();
}

ErrorCode ClientSide::Close() {
  ClientCore& c = *core_;
  const ClientCore::InUse in_use(c);
  if (in_use.refused()) return c.Refusal();
  if (c.born_in != ForkCount()) return ErrorCode::kForkedChild;
  c.Leave();
  c.Become(ClientCore::State::kClosed);
  return ErrorCode::kOk;
}

ErrorCode ClientSide::Refusal() const { return core_->Refusal(); }
ErrorCode ClientSide::MayRead() const { return core_->MaySend(); }
absl::Status ClientSide::Explain(ErrorCode code) const {
  return core_->Explain(code);
}
void ClientSide::ServeEnvironments() { core_->serves_environments = true; }
ErrorCode ClientSide::ShowOwnRun(const RunSnapshot& run) {
  const ClientCore::InUse in_use(*core_);
  if (in_use.refused()) return core_->Refusal();
  if (const ErrorCode code = core_->MayUse(); code != ErrorCode::kOk) {
    return code;
  }
  if (core_->state() == ClientCore::State::kLost) return core_->lost_to;
  if ((core_->plan().feature_bits & kFeatureOwnRun) != 0) {
    StoreOwnRun(core_->header(), run);
  }
  return ErrorCode::kOk;
}

void ClientSide::WakeEngine() { core_->session.engine_bell.NotifyIfWaiting(); }
LaneSide& ClientSide::lanes() { return core_->lanes; }
std::span<const WorkerRows> ClientSide::workers() const {
  return core_->session.region.workers();
}
const AttachedRegion& ClientSide::region() const {
  return core_->session.region;
}
const StepArrays& ClientSide::arrays() const { return core_->session.arrays; }
const std::string& ClientSide::name() const { return core_->name; }
const LrbcHeader& ClientSide::plan() const { return core_->plan(); }
const std::shared_ptr<const RegionMapping>& ClientSide::mapping() const {
  return core_->mapping();
}
std::string ClientSide::EnginePhase() const { return core_->EnginePhase(); }
std::vector<uint32_t> ClientSide::AwaitedWorkers() const {
  return core_->AwaitedWorkers();
}
std::optional<ClientSide::Failure> ClientSide::LastFailure() const {
  return core_->LastFailure();
}
bool ClientSide::EngineAlive() const { return region().EngineAlive(); }
bool ClientSide::pending() const {
  return core_->state() == ClientCore::State::kPending;
}
bool ClientSide::closed() const {
  return core_->state() == ClientCore::State::kClosed;
}

ClientStats ClientSide::Stats() const {
  const ClientCore::Session& session = core_->session;
  const LrbcHeader& shared = *core_->header();
  // relaxed: statistics, of which another thread may be the writer.
  return {.exchanges = session.exchanges.load(std::memory_order_relaxed),
          .shared_core_exchanges =
              session.shared_core_exchanges.load(std::memory_order_relaxed),
          .early_wakes = shared.early_wakes.load(std::memory_order_relaxed),
          .early_hits = shared.early_hits.load(std::memory_order_relaxed),
          .policy_ns = session.policy_ns.load(std::memory_order_relaxed),
          .round_trips = SnapshotOf(shared.client_round_trips),
          .engine_steps = SnapshotOf(shared.engine_step_times)
                              .Since(session.engine_steps_at_attach)};
}

absl::StatusOr<RingReader> ClientSide::RpcRingReader() {
  auto* const ring = mapping()->At<RingHeader>(plan().cmd_s2c_offset);
  return RingReader::Attach(ring, RingDataOf(ring, plan().cmd_ring_size),
                            core_->session.engine_bell);
}

absl::StatusOr<RingWriter> ClientSide::RpcRingWriter() {
  auto* const ring = mapping()->At<RingHeader>(plan().cmd_c2s_offset);
  return RingWriter::Attach(ring, RingDataOf(ring, plan().cmd_ring_size),
                            core_->session.engine_bell);
}

Waiter ClientSide::RpcWaiter() const {
  return Waiter(core_->session.own_bell, core_->options.wait);
}

ImagePlace ClientSide::image_place() const {
  return ImagePlace::Of(mapping(), plan(), 0);
}

}  // namespace tandem
