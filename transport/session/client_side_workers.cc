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
  if (chosen_.empty()) {
    return Unsupported(
        "subsets: expected an engine that knows them, found one that steps all "
        "environments; nothing was sent");
  }
  const bool in_place = actions.data() == arrays_.actions.data() &&
                        actions.size() == arrays_.actions.size();
  const size_t envs = in_place ? arrays_.num_envs : env_ids.size();
  if (const ErrorCode code = CheckActions(actions, envs);
      code != ErrorCode::kOk) {
    return code;
  }
  std::ranges::fill(chosen_, uint8_t{0});
  for (const int64_t env : env_ids) {
    if (env < 0 || env >= arrays_.num_envs) return ErrorCode::kInvalidArgument;
    uint8_t& chosen = chosen_[static_cast<size_t>(env)];
    if (chosen != 0) return ErrorCode::kInvalidArgument;
    chosen = 1;
  }
  for (size_t k = 0; k < env_ids.size() && !in_place; ++k) {
    const std::span<const float> row =
        actions.subspan(k * arrays_.act_size, arrays_.act_size);
    std::ranges::copy(
        row, arrays_.actions.begin() + env_ids[k] * int64_t{arrays_.act_size});
  }
  for (size_t env = 0; env < chosen_.size(); ++env) {
    if (chosen_[env] == 0) arrays_.resets[env] = kSkip;
  }
  Post(ExchangeKind::kStep);
  return ErrorCode::kOk;
}

// Checks the workers of a SendLanes; `*envs` is the number of their
// environments.
ErrorCode ClientSide::CheckLanes(std::span<const uint32_t> workers,
                                 size_t* envs) {
  *envs = 0;
  for (Lane& lane : lanes_) lane.chosen = false;
  for (const uint32_t worker : workers) {
    if (worker >= lanes_.size() || lanes_[worker].chosen) {
      return ErrorCode::kInvalidArgument;
    }
    if (lanes_[worker].open) return ErrorCode::kStepPending;
    lanes_[worker].chosen = true;
    *envs += region_.workers()[worker].num_envs;
  }
  return ErrorCode::kOk;
}

ErrorCode ClientSide::SendLanes(std::span<const uint32_t> workers,
                                std::span<const float> actions) {
  const InUse in_use(this);
  if (in_use.refused()) return Refusal();
  if (state() != State::kLanes || born_in_ != ForkCount()) {
    if (const ErrorCode code = MaySend(); code != ErrorCode::kOk) return code;
  }
  if (lanes_.empty()) {
    return Unsupported(
        "lanes: expected an engine with workers, found one without; nothing "
        "was sent");
  }
  size_t envs = 0;
  if (const ErrorCode code = CheckLanes(workers, &envs);
      code != ErrorCode::kOk) {
    return code;
  }
  const bool in_place = actions.data() == arrays_.actions.data() &&
                        actions.size() == arrays_.actions.size();
  if (const ErrorCode code =
          CheckActions(actions, in_place ? arrays_.num_envs : envs);
      code != ErrorCode::kOk) {
    return code;
  }
  for (const uint32_t worker : workers) {
    if (in_place) break;
    const WorkerRows& rows = region_.workers()[worker];
    const size_t values = size_t{rows.num_envs} * arrays_.act_size;
    std::ranges::copy(actions.first(values),
                      arrays_.actions.begin() +
                          int64_t{rows.first_env} * int64_t{arrays_.act_size});
    actions = actions.subspan(values);
  }
  for (const uint32_t worker : workers) {
    Lane& lane = lanes_[worker];
    lane.open = true;
    ++lane.number;
    // SYNC(lanes.go): release; the actions and flags of the worker's rows
    // before the number.
    SlotOf(worker)->lane_go.store(lane.number, std::memory_order_release);
  }
  engine_bell_.NotifyIfWaiting();
  open_lanes_ += workers.size();
  sent_at_ns_ = waiter_.NowNs();
  if (open_lanes_ != 0) Become(State::kLanes);
  return ErrorCode::kOk;
}

bool ClientSide::LaneIsDone(size_t worker) const {
  // SYNC(lanes.done): acquire; the number, then the worker's rows.
  return lanes_[worker].open &&
         SlotOf(worker)->lane_done.load(std::memory_order_acquire) ==
             lanes_[worker].number;
}

size_t ClientSide::LanesReady() const {
  size_t ready = 0;
  for (size_t worker = 0; worker < lanes_.size(); ++worker) {
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
  const size_t wanted = std::min(min_count, open_lanes_);
  SetPhase(Phase::kWaiting, waiter_.NowNs());
  Watch watch(region_, options_.interrupted, seq_, /*judges_frames=*/false,
              on_long_wait);
  const ErrorCode code = waiter_.Until(
      [this, wanted] { return LanesReady() >= wanted; }, deadline, watch);
  if (code == ErrorCode::kPeerGone) return Lost(code);
  if (code != ErrorCode::kOk) return code;
  received_at_ns_ = waiter_.CameAtNs();
  SetPhase(Phase::kIdle, received_at_ns_);
  failed_lane_of_ = -1;
  for (size_t worker = 0; worker < lanes_.size(); ++worker) {
    if (!LaneIsDone(worker)) continue;
    lanes_[worker].open = false;
    --open_lanes_;
    workers->push_back(static_cast<uint32_t>(worker));
    // relaxed: lane_done published it.
    const uint64_t failed =
        SlotOf(worker)->failed_lane.load(std::memory_order_relaxed);
    if (failed == lanes_[worker].number && failed_lane_of_ < 0) {
      failed_lane_of_ = static_cast<int64_t>(worker);
    }
  }
  if (open_lanes_ == 0) Become(State::kIdle);
  return failed_lane_of_ < 0 ? ErrorCode::kOk : ErrorCode::kEnvFailed;
}

// The engine has admitted this client: no lane is open.
void ClientSide::CloseLanes() {
  lanes_.assign(region_.workers().size(), Lane());
  open_lanes_ = 0;
  for (size_t worker = 0; worker < lanes_.size(); ++worker) {
    // relaxed: attach_ack published it.
    lanes_[worker].number =
        SlotOf(worker)->lane_done.load(std::memory_order_relaxed);
  }
}

}  // namespace tandem
