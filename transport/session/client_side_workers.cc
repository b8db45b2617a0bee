// Subsets and lanes of ClientSide.

#include <algorithm>
#include <cstring>

#include "transport/memory/fork_guard.h"
#include "transport/session/client_side.h"
#include "transport/session/client_side_internal.h"

namespace tandem {

ErrorCode ClientSide::Send(std::span<const float> actions,
                           std::span<const int64_t> env_ids) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  if (session_.chosen.empty()) {
    return Unsupported(
        "subsets: expected an engine that knows them, found one that steps all "
        "environments; nothing was sent");
  }
  const bool in_place = IsInPlace(actions);
  if (!in_place) {
    const ErrorCode code = CheckActions(actions, env_ids.size());
    if (code != ErrorCode::kOk) return code;
  }
  std::ranges::fill(session_.chosen, uint8_t{0});
  for (const int64_t env : env_ids) {
    if (env < 0 || env >= session_.arrays.num_envs)
      return ErrorCode::kInvalidArgument;
    uint8_t& chosen = session_.chosen[static_cast<size_t>(env)];
    if (chosen != 0) return ErrorCode::kInvalidArgument;
    chosen = 1;
    if (!in_place) continue;
    const ErrorCode code = CheckRows(static_cast<size_t>(env), 1);
    if (code != ErrorCode::kOk) return code;
  }
  for (size_t k = 0; k < env_ids.size() && !in_place; ++k) {
    const std::span<const float> row =
        actions.subspan(k * session_.arrays.act_size, session_.arrays.act_size);
    std::ranges::copy(row, session_.arrays.actions.begin() +
                               env_ids[k] * int64_t{session_.arrays.act_size});
  }
  for (size_t env = 0; env < session_.chosen.size(); ++env) {
    if (session_.chosen[env] == 0) session_.arrays.resets[env] = kSkip;
  }
  Post(ExchangeKind::kStep);
  return ErrorCode::kOk;
}

// Checks the actions in place of some environments; those of others may be
// anything.
ErrorCode ClientSide::CheckRows(size_t first_env, size_t envs) {
  const size_t of_each = session_.arrays.act_size;
  const ErrorCode code = CheckActions(
      session_.arrays.actions.subspan(first_env * of_each, envs * of_each),
      envs);
  envs_of_actions_ = session_.arrays.num_envs;
  if (bad_action_ >= 0)
    bad_action_ += static_cast<int64_t>(first_env * of_each);
  return code;
}

// Whether lanes of these workers may be sent.
ErrorCode ClientSide::CheckLanes(std::span<const uint32_t> workers) {
  if (state() != State::kLanes || born_in_ != ForkCount()) {
    if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  }
  if (session_.lanes.empty()) {
    return Unsupported(
        "lanes: expected an engine with workers, found one without; nothing "
        "was sent");
  }
  for (Lane& lane : session_.lanes) lane.chosen = false;
  for (const uint32_t worker : workers) {
    if (worker >= session_.lanes.size() || session_.lanes[worker].chosen) {
      return ErrorCode::kInvalidArgument;
    }
    if (session_.lanes[worker].open) return ErrorCode::kStepPending;
    session_.lanes[worker].chosen = true;
  }
  return ErrorCode::kOk;
}

ErrorCode ClientSide::SendLanes(std::span<const uint32_t> workers,
                                std::span<const float> actions) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (const ErrorCode code = CheckLanes(workers); code != ErrorCode::kOk) {
    return code;
  }
  const bool in_place = IsInPlace(actions);
  if (!in_place) {
    size_t envs = 0;
    for (const uint32_t worker : workers) {
      envs += session_.region.workers()[worker].num_envs;
    }
    const ErrorCode code = CheckActions(actions, envs);
    if (code != ErrorCode::kOk) return code;
  }
  for (const uint32_t worker : workers) {
    const WorkerRows& rows = session_.region.workers()[worker];
    if (in_place) {
      const ErrorCode code = CheckRows(rows.first_env, rows.num_envs);
      if (code != ErrorCode::kOk) return code;
      continue;
    }
    const size_t values = size_t{rows.num_envs} * session_.arrays.act_size;
    std::ranges::copy(
        actions.first(values),
        session_.arrays.actions.begin() +
            int64_t{rows.first_env} * int64_t{session_.arrays.act_size});
    actions = actions.subspan(values);
  }
  PostLanes(workers);
  return ErrorCode::kOk;
}

ErrorCode ClientSide::SendLaneResets(
    std::span<const uint32_t> workers, std::span<const int64_t> env_ids,
    std::span<const std::optional<uint64_t>> seeds) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (const ErrorCode code = CheckLanes(workers); code != ErrorCode::kOk) {
    return code;
  }
  if (const ErrorCode code = FlagResets(env_ids, seeds);
      code != ErrorCode::kOk) {
    return code;
  }
  for (const uint32_t worker : workers) {
    const WorkerRows& rows = session_.region.workers()[worker];
    for (uint8_t& flag :
         session_.arrays.resets.subspan(rows.first_env, rows.num_envs)) {
      if (flag == 0) flag = kSkip;
    }
  }
  PostLanes(workers);
  return ErrorCode::kOk;
}

void ClientSide::PostLanes(std::span<const uint32_t> workers) {
  for (const uint32_t worker : workers) {
    Lane& lane = session_.lanes[worker];
    lane.open = true;
    ++lane.number;
    // SYNC(lanes.go): release; the actions and flags of the worker's rows
    // before the number.
    SlotOf(worker)->lane_go.store(lane.number, std::memory_order_release);
  }
  session_.engine_bell.NotifyIfWaiting();
  session_.open_lanes += workers.size();
  session_.sent_at_ns = session_.waiter.NowNs();
  if (session_.open_lanes != 0) Become(State::kLanes);
}

bool ClientSide::LaneIsDone(size_t worker) const {
  // SYNC(lanes.done): acquire; the number, then the worker's rows.
  return session_.lanes[worker].open &&
         SlotOf(worker)->lane_done.load(std::memory_order_acquire) ==
             session_.lanes[worker].number;
}

std::vector<uint32_t> ClientSide::OpenLanes() const {
  std::vector<uint32_t> open;
  for (size_t worker = 0; worker < session_.lanes.size(); ++worker) {
    if (session_.lanes[worker].open)
      open.push_back(static_cast<uint32_t>(worker));
  }
  return open;
}

size_t ClientSide::LanesReady() const {
  size_t ready = 0;
  for (size_t worker = 0; worker < session_.lanes.size(); ++worker) {
    ready += LaneIsDone(worker) ? 1 : 0;
  }
  return ready;
}

ErrorCode ClientSide::RecvLanes(size_t min_count, Deadline deadline,
                                std::vector<uint32_t>* workers,
                                absl::FunctionRef<void()> on_long_wait) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  workers->clear();
  if (const ErrorCode code = MayUse(); code != ErrorCode::kOk) return code;
  if (state() == State::kLost) return lost_to_;
  if (state() != State::kLanes) return ErrorCode::kNoStepPending;
  const size_t wanted = std::min(min_count, session_.open_lanes);
  SetPhase(Phase::kWaiting, session_.waiter.NowNs());
  Watch watch(session_.region, options_.interrupted, session_.seq,
              /*judges_frames=*/false, on_long_wait);
  const auto ready = [this, wanted] {
    return LanesReady() >= wanted || IsAnotherSession();
  };
  ErrorCode code = session_.waiter.Until(ready, deadline, watch);
  if (code == ErrorCode::kStepTimeout)
    code = AwaitPause(ready, deadline, watch);
  if (code == ErrorCode::kPeerGone) return Lost(code);
  if (code != ErrorCode::kOk) return code;
  if (IsAnotherSession()) return Lost(ErrorCode::kBrokenPeer);
  session_.received_at_ns = session_.waiter.CameAtNs();
  SetPhase(Phase::kIdle, session_.received_at_ns);
  for (size_t worker = 0; worker < session_.lanes.size(); ++worker) {
    if (!LaneIsDone(worker)) continue;
    session_.lanes[worker].open = false;
    --session_.open_lanes;
    workers->push_back(static_cast<uint32_t>(worker));
  }
  if (session_.open_lanes == 0) Become(State::kIdle);
  return LaneFailure(*workers);
}

ErrorCode ClientSide::LaneFailure(std::span<const uint32_t> workers) {
  session_.failed_lane_of = -1;
  for (const uint32_t worker : workers) {
    if (worker >= session_.lanes.size() || session_.lanes[worker].open)
      continue;
    // relaxed: lane_done published it.
    const uint64_t failed =
        SlotOf(worker)->failed_lane.load(std::memory_order_relaxed);
    if (failed == 0 || failed != session_.lanes[worker].number) continue;
    session_.failed_lane_of = worker;
    return ErrorCode::kEnvFailed;
  }
  return ErrorCode::kOk;
}

// The engine has admitted this client: no lane is open.
void ClientSide::CloseLanes() {
  session_.lanes.assign(session_.region.workers().size(), Lane());
  session_.open_lanes = 0;
  for (size_t worker = 0; worker < session_.lanes.size(); ++worker) {
    // relaxed: attach_ack published it.
    session_.lanes[worker].number =
        SlotOf(worker)->lane_done.load(std::memory_order_relaxed);
  }
}

}  // namespace tandem
