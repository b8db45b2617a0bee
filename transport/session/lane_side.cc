#include "transport/lane_side.h"

#include <algorithm>

#include "base/os/fork_guard.h"
#include "transport/session/client_core.h"

namespace tandem {

// Whether lanes of these workers may be sent.
ErrorCode LaneSide::MaySend(std::span<const uint32_t> workers) {
  ClientCore& client = *client_;
  ClientCore::Session& s = client_->session;
  if (client.state() != ClientCore::State::kLanes ||
      client.born_in != ForkCount()) {
    if (const ErrorCode code = client.MaySend(); code != ErrorCode::kOk)
      return code;
  }
  if (s.lanes.empty()) {
    return client.Unsupported(
        "lanes: expected an engine with workers, found one without; nothing "
        "was sent");
  }
  for (ClientCore::Lane& lane : s.lanes) lane.chosen = false;
  for (const uint32_t worker : workers) {
    if (worker >= s.lanes.size() || s.lanes[worker].chosen) {
      return ErrorCode::kInvalidArgument;
    }
    if (s.lanes[worker].open) return ErrorCode::kStepPending;
    s.lanes[worker].chosen = true;
  }
  return ErrorCode::kOk;
}

ErrorCode LaneSide::Send(std::span<const uint32_t> workers,
                         std::span<const float> actions) {
  ClientCore& client = *client_;
  ClientCore::Session& s = client_->session;
  const ClientCore::InUse in_use(client);
  if (in_use.refused()) return client.Refusal();
  if (const ErrorCode code = MaySend(workers); code != ErrorCode::kOk) {
    return code;
  }
  const bool in_place = client.IsInPlace(actions);
  if (!in_place) {
    size_t envs = 0;
    for (const uint32_t worker : workers) {
      envs += s.region.workers()[worker].num_envs;
    }
    const ErrorCode code = client.CheckActions(actions, envs);
    if (code != ErrorCode::kOk) return code;
  }
  for (const uint32_t worker : workers) {
    const WorkerRows& rows = s.region.workers()[worker];
    if (in_place) {
      const ErrorCode code = client.CheckRows(rows.first_env, rows.num_envs);
      if (code != ErrorCode::kOk) return code;
      continue;
    }
    const size_t values = size_t{rows.num_envs} * s.arrays.act_size;
    std::ranges::copy(actions.first(values),
                      s.arrays.actions.begin() +
                          int64_t{rows.first_env} * int64_t{s.arrays.act_size});
    actions = actions.subspan(values);
  }
  Post(workers);
  return ErrorCode::kOk;
}

ErrorCode LaneSide::SendResets(std::span<const uint32_t> workers,
                               std::span<const int64_t> env_ids,
                               std::span<const std::optional<uint64_t>> seeds) {
  ClientCore& client = *client_;
  ClientCore::Session& s = client_->session;
  const ClientCore::InUse in_use(client);
  if (in_use.refused()) return client.Refusal();
  if (const ErrorCode code = MaySend(workers); code != ErrorCode::kOk) {
    return code;
  }
  if (const ErrorCode code = client.FlagResets(env_ids, seeds);
      code != ErrorCode::kOk) {
    return code;
  }
  for (const uint32_t worker : workers) {
    const WorkerRows& rows = s.region.workers()[worker];
    for (uint8_t& flag :
         s.arrays.resets.subspan(rows.first_env, rows.num_envs)) {
      if (flag == 0) flag = kSkip;
    }
  }
  Post(workers);
  return ErrorCode::kOk;
}

void LaneSide::Post(std::span<const uint32_t> workers) {
  ClientCore& client = *client_;
  ClientCore::Session& s = client_->session;
  for (const uint32_t worker : workers) {
    ClientCore::Lane& lane = s.lanes[worker];
    lane.open = true;
    ++lane.number;
    // SYNC(lanes.go): release; the actions and flags of the worker's rows
    // before the number.
    client.SlotOf(worker)->lane_go.store(lane.number,
                                         std::memory_order_release);
  }
  client.NameNoCore();
  s.engine_bell.NotifyIfWaiting();
  s.open_lanes += workers.size();
  s.sent_at_ns = s.waiter.NowNs();
  if (s.open_lanes != 0) client.Become(ClientCore::State::kLanes);
}

std::vector<uint32_t> LaneSide::Open() const {
  const ClientCore::Session& s = client_->session;
  std::vector<uint32_t> open;
  for (size_t worker = 0; worker < s.lanes.size(); ++worker) {
    if (s.lanes[worker].open) open.push_back(static_cast<uint32_t>(worker));
  }
  return open;
}

size_t LaneSide::Ready() const {
  ClientCore& client = *client_;
  const ClientCore::Session& s = client_->session;
  size_t ready = 0;
  for (size_t worker = 0; worker < s.lanes.size(); ++worker) {
    ready += client.LaneIsDone(worker) ? 1 : 0;
  }
  return ready;
}

ErrorCode LaneSide::Recv(size_t min_count, Deadline deadline,
                         std::vector<uint32_t>* workers,
                         absl::FunctionRef<void()> on_long_wait) {
  ClientCore& client = *client_;
  ClientCore::Session& s = client_->session;
  const ClientCore::InUse in_use(client);
  if (in_use.refused()) return client.Refusal();
  workers->clear();
  if (const ErrorCode code = client.MayUse(); code != ErrorCode::kOk)
    return code;
  if (client.state() == ClientCore::State::kLost) return client.lost_to;
  if (client.state() != ClientCore::State::kLanes)
    return ErrorCode::kNoStepPending;
  const size_t wanted = std::min(min_count, s.open_lanes);
  client.SetPhase(Phase::kWaiting, s.waiter.NowNs());
  ClientWatch watch(s.region, client.options.interrupted, s.seq,
                    /*judges_frames=*/false, on_long_wait);
  const auto ready = [&] {
    return Ready() >= wanted || client.IsAnotherSession();
  };
  ErrorCode code = s.waiter.Until(ready, deadline, watch);
  if (code == ErrorCode::kStepTimeout)
    code = client.AwaitPause(ready, deadline, watch);
  if (code == ErrorCode::kPeerGone) return client.Lost(code);
  if (code != ErrorCode::kOk) return code;
  if (client.IsAnotherSession()) return client.Lost(ErrorCode::kBrokenPeer);
  s.received_at_ns = s.waiter.CameAtNs();
  client.SetPhase(Phase::kIdle, s.received_at_ns);
  for (size_t worker = 0; worker < s.lanes.size(); ++worker) {
    if (!client.LaneIsDone(worker)) continue;
    s.lanes[worker].open = false;
    --s.open_lanes;
    workers->push_back(static_cast<uint32_t>(worker));
  }
  if (s.open_lanes == 0) client.Become(ClientCore::State::kIdle);
  return Failure(*workers);
}

ErrorCode LaneSide::Failure(std::span<const uint32_t> workers) {
  ClientCore& client = *client_;
  ClientCore::Session& s = client_->session;
  s.failed_lane_of = -1;
  for (const uint32_t worker : workers) {
    if (worker >= s.lanes.size() || s.lanes[worker].open) continue;
    // relaxed: lane_done published it.
    const uint64_t failed =
        client.SlotOf(worker)->failed_lane.load(std::memory_order_relaxed);
    if (failed == 0 || failed != s.lanes[worker].number) continue;
    s.failed_lane_of = worker;
    return ErrorCode::kEnvFailed;
  }
  return ErrorCode::kOk;
}

// The engine has admitted this client: no lane is open.
void LaneSide::CloseAll() {
  ClientCore::Session& s = client_->session;
  s.lanes.assign(s.region.workers().size(), ClientCore::Lane());
  s.open_lanes = 0;
  for (size_t worker = 0; worker < s.lanes.size(); ++worker) {
    // relaxed: attach_ack published it.
    s.lanes[worker].number =
        client_->SlotOf(worker)->lane_done.load(std::memory_order_relaxed);
  }
}

}  // namespace tandem
