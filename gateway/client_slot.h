// ClientSlot: the gateway's place as the client of its region, and the
// exchanges of its Step and ResetAgent calls.
//
// Data flow: StepRequest -> actions -> ClientSide -> StepResponse.
// Several environments are agents in lock-step: an exchange begins when each
// agent has a Step.
// Ownership: one for a gateway. TryStep may be called by gRPC's threads: it
// blocks for at most kInlineSecs. All other calls block as long as their
// deadlines allow; one thread makes them, the queue for steps.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "gateway/actions.h"
#include "gateway/engine_link.h"
#include "gateway/info_names.h"
#include "gateway/step_call.h"
#include "schema/layout/error_codes.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/mujoco_scene.pb.h"
#include "transport/client_side.h"
#include "transport/rpc_client.h"

namespace tandem::gateway {

// States: without a client, at first; attached, after a Step or Reset; then an
// exchange may be pending. Thread-safe.
class ClientSlot {
 public:
  // The longest wait of TryStep.
  static constexpr double kInlineSecs = 0.002;
  static constexpr size_t kMostGroups = 64;

  // `link` must outlive the slot. `release_secs`: the slot is released so long
  // after the last exchange.
  ClientSlot(EngineLink* link, std::string region, double release_secs)
      : link_(link), region_(std::move(region)), release_secs_(release_secs) {}
  ClientSlot(const ClientSlot&) = delete;
  ClientSlot& operator=(const ClientSlot&) = delete;
  ~ClientSlot() { Release(); }

  enum class [[nodiscard]] Tried : uint8_t{
      kDone,     // the call has ended
      kSent,     // the exchange is pending: give the call to Step soon
      kNotSent,  // give the call to Step
  };
  // Steps the only environment if this takes little time.
  Tried TryStep(const std::shared_ptr<StepCall>& call);

  // Steps, or ends the step that TryStep has begun. With several environments,
  // the call of the last agent steps all; the others wait without a thread.
  // Ends each call with a status:
  //  - OK with success=false: the engine did not answer, or not all agents have
  //    stepped, before the deadline.
  //  - kAlreadyAttached: another client has the slot.
  //  - kInvalidArgument, kInvalidAction: the actions or the agent are invalid;
  //    or the engine's task lacks a negotiated reward term.
  //  - kStepPending: the agent has another Step that waits.
  //  - kNotReady, kPeerGone, kBrokenPeer: the engine is away, or the episode
  //    has ended since the slot was released or the engine replaced. A later
  //    call attaches to the successor, and begins an episode there.
  //  - kUnsupported, kEngineFailed, kEnvFailed: the engine's errors.
  void Step(const std::shared_ptr<StepCall>& call);

  // Resets an agent's environment: an exchange. Blocks until `deadline`. An
  // engine that is away is success=false in the response. Errors: as Step.
  absl::Status Reset(const hazel::rpc::ResetAgentRequest& request,
                     hazel::rpc::ResetAgentResponse* response,
                     Deadline deadline);

  // Resets all environments, without a contract. Outcomes as Reset.
  absl::Status ResetScene(const hazel::rpc::ResetSceneRequest& request,
                          hazel::rpc::ResetSceneResponse* response,
                          Deadline deadline);

  // Keeps a group's actions until the agent's next Step, which checks them, or
  // until Release. Blocks during a call of another thread. kRingFull: more than
  // kMostGroups.
  absl::Status SetGroup(const hazel::rpc::SetActionGroupRequest& request,
                        hazel::rpc::SetActionGroupResponse* response);

  // Copies the results of the last exchange; false: the gateway is not the
  // client. Blocks during a call of another thread. kInvalidArgument: the
  // agent's name.
  absl::StatusOr<bool> Frame(const std::string& agent,
                             hazel::rpc::AgentFrame* frame);

  // Returns the calls through the client's own rings, also during a step;
  // nullptr: the gateway is not the client of a living engine.
  std::shared_ptr<RpcClient> Rpcs();

  // Ends steps that wait for other agents: after their deadlines, or when the
  // engine has ended. Releases the
  // client slot if it was not used for the time of the constructor. Does not
  // block: does nothing during an exchange.
  void Tick(int64_t now_ns);
  // Releases the client slot. Blocks during a call of another thread.
  void Release();

 private:
  struct Client {
    explicit Client(ClientSide client_side);

    ClientSide side;
    std::unique_ptr<RpcClient> rpcs;  // refers to side
    StepNames names;
  };

  class Use;
  using Call = std::shared_ptr<StepCall>;

  absl::Status Attach(Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Prepare(StepCall* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complete(const std::vector<Call>& calls, ErrorCode code)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StepAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWaiting(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Ends>
  void EndWaitingIf(Ends ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddImages(StepCall* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeLate(Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ResetEnvs(std::span<const int64_t> envs, Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TryReset(const hazel::rpc::ResetAgentRequest& request,
                        Deadline deadline, std::string* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TryResetScene(Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SetContract(const hazel::rpc::SimulationContract& contract,
                           uint32_t env, Deadline deadline,
                           std::string* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Failed(ErrorCode code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Detach(const absl::Status& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Interrupt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReportInterruption() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<uint32_t> EnvOf(absl::string_view agent) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t FrameSeq() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string MissingAgents() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EngineLink* const link_;
  const std::string region_;
  const double release_secs_;
  Mutex mutex_;
  std::shared_ptr<Client> client_ ABSL_GUARDED_BY(mutex_);
  // Sent by TryStep, without an outcome yet.
  Call pending_ ABSL_GUARDED_BY(mutex_);
  // By environment: calls that wait for those of the other agents.
  std::map<uint32_t, Call> waiting_ ABSL_GUARDED_BY(mutex_);
  // Without the lock, their finish is called.
  std::vector<Call> ended_ ABSL_GUARDED_BY(mutex_);
  // No call has reported the end of its episode.
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  // Results of an earlier call's exchange will come.
  bool late_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_use_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of SetGroup, by agent, for its next Step.
  std::map<std::string, ActionGroups> groups_ ABSL_GUARDED_BY(mutex_);
  Mutex shared_mutex_;  // held for moments only, also inside mutex_
  std::shared_ptr<Client> shared_ ABSL_GUARDED_BY(shared_mutex_);  // client_
};

}  // namespace tandem::gateway
