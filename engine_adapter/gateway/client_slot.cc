#include "engine_adapter/gateway/client_slot.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine_adapter/gateway/grpc_errors.h"
#include "engine_adapter/gateway/images.h"
#include "engine_adapter/gateway/info_names.h"
#include "engine_adapter/gateway/message_conversion.h"
#include "engine_adapter/gateway/relay_calls.h"
#include "engine_adapter/gateway/stopping.h"
#include "engine_adapter/gateway/task_contract.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"
#include "transport/memory/attached_region.h"
#include "transport/rpc/packed_call.h"

namespace tandem::gateway {
namespace {

constexpr double kAttachSecs = 1;
constexpr double kDefaultStepSecs = 5;  // the published protocol's
constexpr double kImageSecs = 30;       // the first may need so long
constexpr int64_t kEnv = 0;
// An engine looks every 100 ms whether its client still exists.
constexpr double kLeavingSecs = 0.5;
constexpr std::chrono::milliseconds kLook(10);

}  // namespace

StepCall::StepCall(const hazel::rpc::StepRequest* step,
                   hazel::rpc::StepResponse* answer, RewardTerms terms)
    : request(step),
      response(answer),
      rewards(std::move(terms)),
      begun_ns(MonotonicNanos()),
      deadline(Deadline::After(
          step->timeout_s() > 0 ? step->timeout_s() : kDefaultStepSecs,
          begun_ns)) {}

ClientSlot::Client::Client(ClientSide client_side)
    : side(std::move(client_side)),
      info_names(InfoNames(side.plan(), *side.mapping())) {}

ClientSlot::Tried ClientSlot::TryStep(StepCall* call) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || client_ == nullptr || pending_ != nullptr || late_ ||
      call->request->camera_requests_size() > 0) {
    return Tried::kNotSent;
  }
  call->status = Send(*call);
  if (!call->status.ok()) return Tried::kDone;
  const ErrorCode code = client_->side.Recv(Deadline::After(kInlineSecs));
  if (code == ErrorCode::kStepTimeout) {
    pending_ = call;
    return Tried::kSent;
  }
  Complete(call, code);
  return Tried::kDone;
}

void ClientSlot::Finish(StepCall* call) {
  const std::lock_guard lock(mutex_);
  EndPending();
  if (call->done) return;
  call->done = true;
  call->status = Attach(call->deadline);
  if (call->status.ok()) call->status = ReportInterruption();
  if (call->status.ok()) call->status = TakeLate(call->deadline);
  if (call->status.ok()) call->status = Send(*call);
  if (CodeOf(call->status) == ErrorCode::kStepTimeout) return TimeOut(call);
  if (!call->status.ok()) return;
  Complete(call, client_->side.Recv(call->deadline));
  if (call->status.ok() && call->response->success()) {
    call->status = AddImages(call);
  }
}

// The caller of TryStep has not come to Finish yet, or comes now.
void ClientSlot::EndPending() {
  if (pending_ == nullptr) return;
  StepCall* const call = std::exchange(pending_, nullptr);
  call->done = true;
  Complete(call, client_->side.Recv(call->deadline));
}

absl::Status ClientSlot::Reset(const hazel::rpc::ResetAgentRequest& request,
                               hazel::rpc::ResetAgentResponse* response,
                               Deadline deadline) {
  const std::lock_guard lock(mutex_);
  EndPending();
  std::string message;
  const absl::Status status = [&]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(Attach(deadline));
    interrupted_ = false;
    TANDEM_RETURN_IF_ERROR(CheckAgent(request.agent_name()));
    TANDEM_RETURN_IF_ERROR(TakeLate(deadline));
    // Programs that mean no contract send an empty one.
    if (request.simulation_contract().ByteSizeLong() > 0) {
      TANDEM_RETURN_IF_ERROR(
          SetContract(request.simulation_contract(), deadline, &message));
    }
    const std::array<int64_t, 1> envs = {kEnv};
    ErrorCode code = client_->side.SendReset(envs, {});
    if (code == ErrorCode::kOk) {
      code = client_->side.Recv(deadline);
      late_ = code == ErrorCode::kStepTimeout;
    }
    last_use_ns_ = MonotonicNanos();
    return Failed(code);
  }();
  const bool is_late = CodeOf(status) == ErrorCode::kStepTimeout;
  if (!status.ok() && !IsAway(status) && !is_late) return status;
  response->set_success(status.ok());
  response->set_message(status.ok() ? message : NotReadyText(status));
  return absl::OkStatus();
}

absl::Status ClientSlot::ResetScene(
    const hazel::rpc::ResetSceneRequest& request,
    hazel::rpc::ResetSceneResponse* response, Deadline deadline) {
  hazel::rpc::ResetAgentResponse reset;
  TANDEM_RETURN_IF_ERROR(Reset({}, &reset, deadline));
  response->set_success(reset.success());
  response->set_message(reset.success() && request.preserve_time()
                            ? "preserve_time has no effect on this engine"
                            : reset.message());
  return absl::OkStatus();
}

absl::Status ClientSlot::SetGroup(
    const hazel::rpc::SetActionGroupRequest& request,
    hazel::rpc::SetActionGroupResponse* response) {
  const std::lock_guard lock(mutex_);
  const std::string& name = request.group().group_name();
  if (groups_.size() >= kMostGroups && !groups_.contains(name)) {
    return MakeError(ErrorCode::kRingFull,
                     absl::StrCat("expected at most ", kMostGroups,
                                  " action groups before a Step, found more; "
                                  "next: call Step, which applies them"));
  }
  groups_[name] = request.group();
  response->set_success(true);
  return absl::OkStatus();
}

absl::StatusOr<bool> ClientSlot::Frame(const std::string& agent,
                                       hazel::rpc::AgentFrame* frame) {
  const std::lock_guard lock(mutex_);
  EndPending();
  if (client_ == nullptr || late_) return false;
  TANDEM_RETURN_IF_ERROR(CheckAgent(agent));
  FillFrame(frame);
  return true;
}

std::shared_ptr<RpcClient> ClientSlot::Rpcs() {
  std::shared_ptr<Client> client;
  {
    const std::lock_guard lock(shared_mutex_);
    client = shared_;
  }
  if (client == nullptr || !client->side.EngineAlive()) return nullptr;
  return {client, client->rpcs.get()};
}

void ClientSlot::ReleaseIdle(int64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || client_ == nullptr || pending_ != nullptr) return;
  if (Deadline::After(release_secs_, last_use_ns_).PassedAt(now_ns)) {
    Interrupt();
  }
}

void ClientSlot::Release() {
  const std::lock_guard lock(mutex_);
  EndPending();
  interrupted_ = false;
  if (client_ != nullptr) Detach();
}

absl::Status ClientSlot::Attach(Deadline deadline) {
  if (client_ != nullptr && client_->side.EngineAlive()) {
    return absl::OkStatus();
  }
  if (client_ != nullptr) Interrupt();
  // ClientSide::Attach would wait for an engine.
  TANDEM_ASSIGN_OR_RETURN(const FoundRegion found, FindRegion(region_));
  if (deadline.PassedAt(MonotonicNanos())) {
    return MakeError(ErrorCode::kStepTimeout,
                     absl::StrCat("region '", region_,
                                  "': the deadline passed before the attach"));
  }
  // The attach itself notices a client with a lock.
  if (!found.lock.HeldByOther(kClientLockByte)) {
    TANDEM_RETURN_IF_ERROR(CheckNoClient(deadline));
  }
  TANDEM_ASSIGN_OR_RETURN(
      ClientSide side,
      ClientSide::Attach(region_, {.timeout_secs = kAttachSecs,
                                   .autoreset = AutoresetMode::kDisabled,
                                   .interrupted = IsStopping}));
  auto client = std::make_shared<Client>(std::move(side));
  TANDEM_ASSIGN_OR_RETURN(
      client->rpcs,
      RpcClient::Create(&client->side, {.interrupted = IsStopping}));
  client_ = std::move(client);
  last_use_ns_ = MonotonicNanos();
  const std::lock_guard lock(shared_mutex_);
  shared_ = client_;
  return absl::OkStatus();
}

// A client without a lock would not be noticed by an attach. The engine knows
// it, and refuses ResetAgent of attendants beside it. Otherwise it refuses this
// call for its argument: no environment has this number.
absl::Status ClientSlot::CheckNoClient(Deadline deadline) {
  rpc::ResetAgentRequestT request;
  request.env_ids = {std::numeric_limits<uint32_t>::max()};
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::ResetAgent;
  call.payload.Set(std::move(request));
  // The engine notices the end of a client some time after it.
  const Deadline noticed = Deadline::After(kLeavingSecs);
  absl::Status status = link_->Call(call, deadline).status();
  while (CodeOf(status) == ErrorCode::kAlreadyAttached &&
         !noticed.PassedAt(MonotonicNanos())) {
    std::this_thread::sleep_for(kLook);
    status = link_->Call(call, deadline).status();
  }
  if (CodeOf(status) != ErrorCode::kAlreadyAttached) return absl::OkStatus();
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("region '", region_,
                                "': expected a free client slot; the engine "
                                "answered: ",
                                status.message()));
}

absl::Status ClientSlot::CheckAgent(absl::string_view name) const {
  const uint32_t envs = client_->side.plan().num_envs;
  if (envs != 1) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("region '", region_,
                     "': expected an engine with one environment, found ", envs,
                     "; next: start the engine with --num_envs=1"));
  }
  if (name.empty() || name == "agent_0") return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("agent_name: expected agent_0 or nothing, "
                                "found ",
                                Quoted(name)));
}

absl::Status ClientSlot::Send(const StepCall& call) {
  TANDEM_RETURN_IF_ERROR(CheckAgent(call.request->agent_name()));
  const StepArrays& arrays = client_->side.arrays();
  if (arrays.obs_size == 0 || arrays.act_size == 0) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", region_,
                                  "': expected observations and actions that "
                                  "are rows of float32, found ",
                                  arrays.obs_size, " and ", arrays.act_size,
                                  " numbers; next: use a task with Box spaces "
                                  "of float32"));
  }
  TANDEM_RETURN_IF_ERROR(FindRewards(call.rewards));
  actions_.resize(arrays.act_size);
  TANDEM_RETURN_IF_ERROR(ComposeActions(*call.request, groups_, actions_));
  groups_.clear();
  const ErrorCode code = client_->side.Send(actions_);
  last_use_ns_ = MonotonicNanos();
  return Failed(code);
}

absl::Status ClientSlot::FindRewards(const RewardTerms& terms) {
  reward_columns_.clear();
  if (terms == nullptr) return absl::OkStatus();
  const std::vector<std::string>& names = client_->info_names;
  for (const std::string& term : *terms) {
    const auto found = std::find(names.begin(), names.end(), term);
    if (found == names.end() && term != kRewardTerm) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("region '", region_, "': expected the reward term ",
                       Quoted(term),
                       " of the negotiated contract, found another task, "
                       "without it; next: NegotiateTask"));
    }
    // The reward's own column follows the infos.
    reward_columns_.push_back(term == kRewardTerm
                                  ? names.size()
                                  : static_cast<size_t>(found - names.begin()));
  }
  return absl::OkStatus();
}

void ClientSlot::Complete(StepCall* call, ErrorCode code) {
  if (code == ErrorCode::kOk) {
    call->status = absl::OkStatus();
    return Fill(call);
  }
  call->status = Failed(code);
  if (code != ErrorCode::kStepTimeout) return;
  late_ = true;
  TimeOut(call);
}

// Programs expect the end of their timeout_s in the response.
void ClientSlot::TimeOut(StepCall* call) {
  call->response->set_success(false);
  call->response->set_message(std::string(call->status.message()));
  call->status = absl::OkStatus();
}

void ClientSlot::Fill(StepCall* call) {
  const StepArrays& arrays = client_->side.arrays();
  const int64_t now_ns = MonotonicNanos();
  hazel::rpc::StepResponse* const response = call->response;
  response->set_success(true);
  response->set_physics_step_duration_us(
      static_cast<uint64_t>(now_ns - call->begun_ns) / 1000);
  FillFrame(response->mutable_observation());
  if (call->rewards == nullptr) {
    (*response->mutable_reward_signals())[kRewardTerm] = arrays.rewards[kEnv];
  }
  for (size_t i = 0; i < reward_columns_.size(); ++i) {
    const size_t column = reward_columns_[i];
    (*response->mutable_reward_signals())[(*call->rewards)[i]] =
        column < arrays.infos.size() ? static_cast<float>(arrays.infos[column])
                                     : arrays.rewards[kEnv];
  }
  const bool terminated = arrays.terminateds[kEnv] != 0;
  const bool truncated = arrays.truncateds[kEnv] != 0;
  response->set_terminated(terminated);
  response->set_truncated(truncated);
  (*response->mutable_termination_flags())[kTerminatedTerm] = terminated;
  (*response->mutable_termination_flags())[kTimeOutTerm] = truncated;
  for (size_t i = 0; i < client_->info_names.size(); ++i) {
    (*response->mutable_info())[client_->info_names[i]] =
        static_cast<float>(arrays.infos[i]);
  }
}

void ClientSlot::FillFrame(hazel::rpc::AgentFrame* frame) const {
  const StepArrays& arrays = client_->side.arrays();
  frame->set_timestamp_ms(UnixMillis());
  // relaxed: Recv has acquired it.
  frame->set_frame_number(
      static_cast<uint32_t>(client_->side.mapping()->header()->frame_seq.load(
          std::memory_order_relaxed)));
  frame->mutable_observations()->Add(arrays.obs.begin(), arrays.obs.end());
  frame->mutable_actions()->Add(actions_.begin(), actions_.end());
  frame->set_agent_name("agent_0");
}

// Before the next exchange: the images show the state of the observations.
absl::Status ClientSlot::AddImages(StepCall* call) {
  for (const auto& request : call->request->camera_requests()) {
    TANDEM_ASSIGN_OR_RETURN(
        RpcMessage answer,
        client_->rpcs->Call(CallOf(rpc::MethodId::GetCameraFrame, request),
                            Deadline::After(kImageSecs)));
    TANDEM_RETURN_IF_ERROR(TakeAnswer(rpc::MethodId::GetCameraFrame, &answer,
                                      call->response->add_camera_frames()));
    TANDEM_RETURN_IF_ERROR(CheckTotalSize(call->response->camera_frames()));
  }
  return absl::OkStatus();
}

absl::Status ClientSlot::TakeLate(Deadline deadline) {
  if (!late_) return absl::OkStatus();
  const ErrorCode code = client_->side.Recv(deadline);
  late_ = code == ErrorCode::kStepTimeout;
  // The results, or the engine's error, belong to a call that has ended.
  if (code == ErrorCode::kStepTimeout || code == ErrorCode::kPeerGone ||
      code == ErrorCode::kBrokenPeer || code == ErrorCode::kInterrupted) {
    return Failed(code);
  }
  return absl::OkStatus();
}

absl::Status ClientSlot::SetContract(
    const hazel::rpc::SimulationContract& contract, Deadline deadline,
    std::string* message) {
  // Not as an attendant: the engine refuses it while there is a client.
  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<rpc::SimulationContract> packed =
      Pack(contract, *rpc::SimulationContractTypeTable(), &builder).o;
  const auto envs = builder.CreateVector(std::vector<uint32_t>{kEnv});
  rpc::ResetAgentRequestBuilder request(builder);
  request.add_simulation_contract(packed);
  request.add_env_ids(envs);
  request.add_at_next_reset(true);
  PackedCall call(&builder, rpc::MethodId::ResetAgent,
                  rpc::Payload::ResetAgentRequest, request.Finish().Union());
  TANDEM_ASSIGN_OR_RETURN(const RpcMessage answer,
                          client_->rpcs->Call(std::move(call), deadline));
  const auto* const set = answer.envelope().payload_as_ResetAgentResponse();
  if (set == nullptr) {
    return MakeError(ErrorCode::kEngineFailed,
                     "expected the engine's answer to ResetAgent, found "
                     "another kind of message");
  }
  if (const auto* const unused = set->unused_fields();
      unused != nullptr && unused->size() > 0) {
    *message = absl::StrCat(
        "fields of the contract without effect here: ",
        absl::StrJoin(*unused, ", ",
                      [](std::string* out, const flatbuffers::String* field) {
                        out->append(field->str());
                      }));
  }
  return absl::OkStatus();
}

absl::Status ClientSlot::Failed(ErrorCode code) {
  if (code == ErrorCode::kOk) return absl::OkStatus();
  const absl::Status status = client_->side.Explain(code);
  if (code == ErrorCode::kPeerGone || code == ErrorCode::kBrokenPeer) Detach();
  return status;
}

void ClientSlot::Interrupt() {
  interrupted_ = true;
  Detach();
}

absl::Status ClientSlot::ReportInterruption() {
  if (!std::exchange(interrupted_, false)) return absl::OkStatus();
  return MakeError(
      ErrorCode::kPeerGone,
      absl::StrCat("region '", region_,
                   "': the episode has ended: the engine was replaced, or the "
                   "gateway has released the client slot after ",
                   release_secs_, " s without a step; next: ResetAgent"));
}

void ClientSlot::Detach() {
  {
    const std::lock_guard lock(shared_mutex_);
    shared_ = nullptr;
  }
  client_->rpcs->End();
  // Another thread may still own the object, at the end of its call.
  if (client_->side.Close() != ErrorCode::kOk) std::abort();
  client_ = nullptr;
  late_ = false;
}

}  // namespace tandem::gateway
