// Length: each transition of the slot's client, under one lock.
#include "gateway/client_slot.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/quoted.h"
#include "flatbuffers/flatbuffers.h"
#include "gateway/grpc_errors.h"
#include "gateway/images.h"
#include "gateway/message_conversion.h"
#include "gateway/relay_calls.h"
#include "gateway/stopping.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"
#include "transport/region.h"

namespace tandem::gateway {
namespace {

constexpr double kAttachSecs = 1;
constexpr double kImageSecs = 30;  // of a step; the first may need so long

std::string NameOf(const std::string& agent) {
  return agent.empty() ? "agent_0" : agent;
}

// Programs repeat a reset while its response has the words of NotReadyText.
template <typename Response>
absl::Status Report(const absl::Status& status, const std::string& message,
                    Response* response) {
  const bool is_late = CodeOf(status) == ErrorCode::kStepTimeout;
  if (!status.ok() && !IsAway(status) && !is_late) return status;
  response->set_success(status.ok());
  response->set_message(status.ok() ? message : NotReadyText(status));
  return absl::OkStatus();
}

}  // namespace

// Holds the lock. After its end, gRPC gets the calls that have ended: gRPC may
// then begin other calls on this thread.
class ABSL_SCOPED_LOCKABLE ClientSlot::Use {
 public:
  explicit Use(ClientSlot* slot) ABSL_EXCLUSIVE_LOCK_FUNCTION(slot->mutex_)
      : slot_(slot) {
    slot->mutex_.Lock();
  }
  // The caller has taken the lock.
  Use(ClientSlot* slot, std::adopt_lock_t)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(slot->mutex_)
      : slot_(slot) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() ABSL_UNLOCK_FUNCTION() {
    const std::vector<Call> ended = std::exchange(slot_->ended_, {});
    slot_->mutex_.Unlock();
    for (const Call& call : ended) call->finish(call->status);
  }

 private:
  ClientSlot* const slot_;
};

ClientSlot::Client::Client(ClientSide client_side)
    : side(std::move(client_side)),
      names(StepNamesOf(side.plan(), *side.mapping())) {}

ClientSlot::Tried ClientSlot::TryStep(const Call& call) {
  if (!mutex_.TryLock()) return Tried::kNotSent;
  const Use use(this, std::adopt_lock);
  if (client_ == nullptr || pending_ != nullptr || late_ ||
      client_->side.plan().num_envs != 1 ||
      call->request->camera_requests_size() > 0) {
    return Tried::kNotSent;
  }
  call->status = Prepare(call.get());
  if (call->status.ok()) call->status = Send();
  if (!call->status.ok()) {
    End(call);
    return Tried::kDone;
  }
  const ErrorCode code = client_->side.Recv(Deadline::After(kInlineSecs));
  if (code == ErrorCode::kStepTimeout) {
    pending_ = call;
    return Tried::kSent;
  }
  Complete({call}, code);
  return Tried::kDone;
}

void ClientSlot::Step(const Call& call) {
  const Use use(this);
  EndPending();
  if (call->done) return;
  call->status = Attach(call->deadline);
  if (call->status.ok()) call->status = ReportInterruption();
  if (call->status.ok()) call->status = TakeLate(call->deadline);
  if (CodeOf(call->status) == ErrorCode::kStepTimeout) {
    call->TimeOut(std::string(call->status.message()));
    return End(call);
  }
  if (call->status.ok()) call->status = Prepare(call.get());
  if (!call->status.ok()) return End(call);
  // A program that has ended neither steps nor hinders its successor.
  EndWaitingIf([](StepCall* each) {
    each->status = each->CheckWaits();
    return !each->status.ok();
  });
  if (!waiting_.emplace(call->env, call).second) {
    call->status = MakeError(
        ErrorCode::kStepPending,
        absl::StrCat("agent_", call->env,
                     ": expected one Step at a time, found one that waits for "
                     "the other agents' Steps"));
    return End(call);
  }
  last_use_ns_ = MonotonicNanos();
  if (waiting_.size() == client_->side.plan().num_envs) StepAll();
}

// Every agent has a call.
void ClientSlot::StepAll() {
  Deadline deadline = Deadline::Infinite();
  for (const auto& [env, call] : waiting_) {
    if (call->deadline.at_ns() < deadline.at_ns()) deadline = call->deadline;
  }
  if (const absl::Status status = Send(); !status.ok()) {
    return EndWaiting(status);
  }
  const ErrorCode code = client_->side.Recv(deadline);
  std::vector<Call> calls;
  for (const auto& [env, call] : std::exchange(waiting_, {})) {
    calls.push_back(call);
  }
  Complete(calls, code);
}

void ClientSlot::EndWaiting(const absl::Status& status) {
  EndWaitingIf([&](StepCall* call) {
    call->status = status;
    return true;
  });
}

// `ends`: whether the call ends; it has set the outcome.
template <typename Ends>
void ClientSlot::EndWaitingIf(Ends ends) {
  std::erase_if(waiting_,
                [&](const auto& each) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                  if (!ends(each.second.get())) return false;
                  End(each.second);
                  return true;
                });
}

void ClientSlot::End(const Call& call) {
  call->done = true;
  ended_.push_back(call);
}

// The caller of TryStep has not come to Step yet, or comes now.
void ClientSlot::EndPending() {
  if (pending_ == nullptr) return;
  const Call call = std::exchange(pending_, nullptr);
  Complete({call}, client_->side.Recv(call->deadline));
}

absl::Status ClientSlot::Reset(const hazel::rpc::ResetAgentRequest& request,
                               hazel::rpc::ResetAgentResponse* response,
                               Deadline deadline) {
  const Use use(this);
  EndPending();
  std::string message;
  const absl::Status status = TryReset(request, deadline, &message);
  return Report(status, message, response);
}

absl::Status ClientSlot::TryReset(const hazel::rpc::ResetAgentRequest& request,
                                  Deadline deadline, std::string* message) {
  TANDEM_RETURN_IF_ERROR(Attach(deadline));
  interrupted_ = false;
  TANDEM_ASSIGN_OR_RETURN(const uint32_t env, EnvOf(request.agent_name()));
  TANDEM_RETURN_IF_ERROR(TakeLate(deadline));
  // Programs that mean no contract send an empty one.
  if (request.simulation_contract().ByteSizeLong() > 0) {
    TANDEM_RETURN_IF_ERROR(
        SetContract(request.simulation_contract(), env, deadline, message));
  }
  const std::array<int64_t, 1> envs = {env};
  return ResetEnvs(envs, deadline);
}

absl::Status ClientSlot::ResetScene(
    const hazel::rpc::ResetSceneRequest& request,
    hazel::rpc::ResetSceneResponse* response, Deadline deadline) {
  const Use use(this);
  EndPending();
  return Report(TryResetScene(deadline),
                request.preserve_time()
                    ? "preserve_time has no effect on this engine"
                    : "",
                response);
}

absl::Status ClientSlot::TryResetScene(Deadline deadline) {
  TANDEM_RETURN_IF_ERROR(Attach(deadline));
  interrupted_ = false;
  TANDEM_RETURN_IF_ERROR(TakeLate(deadline));
  std::vector<int64_t> envs(client_->side.plan().num_envs);
  std::iota(envs.begin(), envs.end(), int64_t{0});
  return ResetEnvs(envs, deadline);
}

absl::Status ClientSlot::ResetEnvs(std::span<const int64_t> envs,
                                   Deadline deadline) {
  ErrorCode code = client_->side.SendReset(envs, {});
  if (code == ErrorCode::kOk) {
    code = client_->side.Recv(deadline);
    late_ = code == ErrorCode::kStepTimeout;
  }
  last_use_ns_ = MonotonicNanos();
  return Failed(code);
}

absl::Status ClientSlot::SetGroup(
    const hazel::rpc::SetActionGroupRequest& request,
    hazel::rpc::SetActionGroupResponse* response) {
  const Use use(this);
  size_t kept = 0;
  for (const auto& [agent, groups] : groups_) kept += groups.size();
  if (kept >= kMostGroups) {
    return MakeError(ErrorCode::kRingFull,
                     absl::StrCat("expected at most ", kMostGroups,
                                  " action groups before a Step, found more; "
                                  "next: call Step, which applies them"));
  }
  groups_[NameOf(request.agent_name())][request.group().group_name()] =
      request.group();
  response->set_success(true);
  return absl::OkStatus();
}

absl::StatusOr<bool> ClientSlot::Frame(const std::string& agent,
                                       hazel::rpc::AgentFrame* frame) {
  const Use use(this);
  EndPending();
  if (client_ == nullptr || late_) return false;
  TANDEM_ASSIGN_OR_RETURN(const uint32_t env, EnvOf(agent));
  FillFrame(client_->side.arrays(), FrameSeq(), env, frame);
  return true;
}

std::shared_ptr<RpcClient> ClientSlot::Rpcs() {
  std::shared_ptr<Client> client;
  {
    MutexLock lock(&shared_mutex_);
    client = shared_;
  }
  if (client == nullptr || !client->side.EngineAlive()) return nullptr;
  return {client, client->rpcs.get()};
}

std::string ClientSlot::MissingAgents() const {
  constexpr size_t kMostNames = 4;
  if (waiting_.empty()) return "";
  std::vector<std::string> names;
  const uint32_t envs = client_->side.plan().num_envs;
  for (uint32_t env = 0; env < envs && names.size() < kMostNames; ++env) {
    if (!waiting_.contains(env)) names.push_back(absl::StrCat("agent_", env));
  }
  const size_t others = envs - waiting_.size() - names.size();
  return absl::StrCat(
      absl::StrJoin(names, ", "),
      others == 0 ? "" : absl::StrCat(" and ", others, " more"));
}

void ClientSlot::Tick(int64_t now_ns) {
  if (!mutex_.TryLock()) return;
  const Use use(this, std::adopt_lock);
  if (client_ == nullptr || pending_ != nullptr) return;
  if (!waiting_.empty() && !client_->side.EngineAlive()) return Interrupt();
  const std::string missing = MissingAgents();
  EndWaitingIf([&](StepCall* call) {
    if (!call->deadline.PassedAt(now_ns)) return false;
    call->TimeOut(absl::StrCat(
        "expected a Step of each agent within timeout_s, since all agents "
        "step at once, found none of ",
        missing));
    return true;
  });
  if (Deadline::After(release_secs_, last_use_ns_).PassedAt(now_ns)) {
    Interrupt();
  }
}

void ClientSlot::Release() {
  const Use use(this);
  EndPending();
  interrupted_ = false;
  groups_.clear();
  if (client_ != nullptr)
    Detach(absl::CancelledError("the programs have ended"));
}

absl::Status ClientSlot::Attach(Deadline deadline) {
  if (client_ != nullptr && client_->side.EngineAlive()) {
    return absl::OkStatus();
  }
  if (client_ != nullptr) Interrupt();
  // ClientSide::Attach would wait for an engine.
  TANDEM_ASSIGN_OR_RETURN(const bool has_client, HasLockingClient(region_));
  if (deadline.PassedAt(MonotonicNanos())) {
    return MakeError(ErrorCode::kStepTimeout,
                     absl::StrCat("region '", region_,
                                  "': the deadline passed before the attach"));
  }
  // The attach itself notices a client with a lock.
  if (!has_client) {
    TANDEM_RETURN_IF_ERROR(link_->CheckNoClient(deadline));
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
  MutexLock lock(&shared_mutex_);
  shared_ = client_;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ClientSlot::EnvOf(absl::string_view agent) const {
  const uint32_t envs = client_->side.plan().num_envs;
  if (agent.empty()) return 0;
  absl::string_view number = agent;
  uint32_t env = 0;
  if (absl::ConsumePrefix(&number, "agent_") &&
      absl::SimpleAtoi(number, &env) && env < envs &&
      absl::StrCat("agent_", env) == agent) {
    return env;
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("agent_name: expected agent_0",
                   envs > 1 ? absl::StrCat(" to agent_", envs - 1) : "",
                   ", or nothing, found ", Quoted(agent)));
}

uint64_t ClientSlot::FrameSeq() const {
  // relaxed: Recv has acquired it.
  return client_->side.mapping()->header()->frame_seq.load(
      std::memory_order_relaxed);
}

absl::Status ClientSlot::Prepare(StepCall* call) {
  TANDEM_ASSIGN_OR_RETURN(call->env, EnvOf(call->request->agent_name()));
  // Invalid ones must not refuse the next Step, too.
  const auto groups = groups_.extract(NameOf(call->request->agent_name()));
  return call->Prepare(client_->side.arrays(), client_->names,
                       groups ? groups.mapped() : ActionGroups());
}

absl::Status ClientSlot::Send() {
  const ErrorCode code = client_->side.Send(client_->side.arrays().actions);
  last_use_ns_ = MonotonicNanos();
  return Failed(code);
}

// Ends the calls of an exchange, of which Recv has returned `code`.
void ClientSlot::Complete(const std::vector<Call>& calls, ErrorCode code) {
  const absl::Status failed = Failed(code);
  late_ = code == ErrorCode::kStepTimeout;
  for (const Call& call : calls) {
    if (late_) {
      call->TimeOut(failed.message());
    } else if (!failed.ok()) {
      call->status = failed;
    } else {
      call->Fill(client_->side.arrays(), FrameSeq(), client_->names);
      call->status = AddImages(call.get());
    }
    End(call);
  }
}

// Before the next exchange: the images show the state of the observations.
absl::Status ClientSlot::AddImages(StepCall* call) {
  const Deadline deadline = Deadline::After(kImageSecs);
  for (const auto& request : call->request->camera_requests()) {
    TANDEM_RETURN_IF_ERROR(call->CheckWaits());
    TANDEM_ASSIGN_OR_RETURN(
        RpcMessage answer,
        client_->rpcs->Call(
            CallOf(rpc::MethodId::GetCameraFrame, request, call->env),
            deadline));
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
    const hazel::rpc::SimulationContract& contract, uint32_t env,
    Deadline deadline, std::string* message) {
  // Not as an attendant: the engine refuses it while there is a client.
  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<rpc::SimulationContract> packed =
      Pack(contract, *rpc::SimulationContractTypeTable(), &builder).o;
  const auto envs = builder.CreateVector(std::vector<uint32_t>{env});
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
  if (client_ != nullptr &&
      (code == ErrorCode::kPeerGone || code == ErrorCode::kBrokenPeer)) {
    Detach(status);
  }
  return status;
}

void ClientSlot::Interrupt() {
  interrupted_ = true;
  Detach(MakeError(ErrorCode::kPeerGone,
                   absl::StrCat("region '", region_,
                                "': the engine has ended, or the client slot "
                                "was released")));
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

// `reason`: of the calls that wait for other agents.
void ClientSlot::Detach(const absl::Status& reason) {
  EndWaiting(reason);
  {
    MutexLock lock(&shared_mutex_);
    shared_ = nullptr;
  }
  client_->rpcs->End();
  // Another thread may still own the object, at the end of its call.
  if (client_->side.Close() != ErrorCode::kOk) std::abort();
  client_ = nullptr;
  late_ = false;
}

}  // namespace tandem::gateway
