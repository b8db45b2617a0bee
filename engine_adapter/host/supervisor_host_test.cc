// The supervisor's side of a region, between real processes: the supervisor and
// its workers, the client, and attendants.
#include "engine_adapter/supervisor_host.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/host/testing/calling_client.h"
#include "engine_adapter/host/testing/panel.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/attached_frames.h"
#include "transport/client_side.h"
#include "transport/frame_geometry.h"
#include "transport/frame_reader.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"
#include "transport/session/supervisor_side.h"
#include "transport/session/testing/echo_engine.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/worker_side.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 4;
constexpr uint32_t kWorkers = 2;
constexpr FrameGeometry kFrames = {
    .width = 2, .height = 1, .capacity = 3, .metadata_bytes = 64};

// As of environments in Python: the rewards are a field, too.
RegionSpec Spec() {
  RegionSpec spec = WorkerSpec(kEnvs, kWorkers);
  spec.ring_bytes = kDefaultRingBytes;
  spec.frames = kFrames;
  spec.fields = {
      {.role = FieldRole::kReward, .type = FieldType::kFloat64, .path = ""}};
  return spec;
}

// The supervisor's program.
class Supervisor {
 public:
  // `input`: readable when the test has sent something, or has closed its end.
  Supervisor(const std::string& name, int input)
      : host_(SupervisorHost::Create(name, Spec()).value()), input_(input) {
    for (uint32_t worker = 0; worker < kWorkers; ++worker) StartWorker(worker);
    host_->ResetWorkers();
    host_->WatchInput(input);
  }

  // Serves until the test closes its end.
  void Run() {
    for (;;) {
      const SupervisorEvent event = host_->Next(Deadline::After(20));
      switch (event) {
        case SupervisorEvent::kWorkersReady:
          if (!host_->Open().ok()) _exit(98);
          break;
        case SupervisorEvent::kFrameWanted:
          PublishFrame();
          host_->AnswerFrame();
          break;
        case SupervisorEvent::kWorkerDied:
          host_->End(ErrorCode::kEngineFailed,
                     host_->WorkerText(host_->dead_worker()));
          return;
        case SupervisorEvent::kInput: {
          pollfd end = {.fd = input_, .events = 0, .revents = 0};
          if (poll(&end, 1, 0) == 1) return;  // POLLHUP
          break;                              // it stays readable
        }
        default:
          break;
      }
    }
  }

 private:
  void StartWorker(uint32_t worker) {
    const pid_t supervisor = getpid();
    if (fork() != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(1);
    close(input_);
    absl::StatusOr<WorkerSide> side =
        WorkerSide::Attach(host_->fd(), worker, {});
    if (!side.ok()) _exit(97);
    CountingWorker(*std::move(side)).Serve();
    _exit(0);
  }

  // A pixel has the number of the frame.
  void PublishFrame() {
    ++frames_;
    const std::vector<std::byte> frame(kFrames.FrameBytes(),
                                       static_cast<std::byte>(frames_));
    host_->PublishFrame(frame, {.last_reward = 1.5}, "frame");
  }

  const std::unique_ptr<SupervisorHost> host_;
  const int input_;
  int frames_ = 0;
};

class SupervisorHostTest : public testing::Test {
 protected:
  void SetUp() override {
    alarm(60);
    std::array<int, 2> ends;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    supervisor_ = fork();
    if (supervisor_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(60);
      close(ends[0]);
      Supervisor(name_, ends[1]).Run();
      _exit(0);
    }
    close(ends[1]);
    input_ = ends[0];
  }
  void TearDown() override {
    close(input_);
    int status = -1;
    EXPECT_EQ(waitpid(supervisor_, &status, 0), supervisor_);
    EXPECT_EQ(status, 0);
    alarm(0);
  }

  // Sends an exchange's actions; the result is Recv's.
  static void Send(CallingClient& client, float action) {
    EXPECT_EQ(client.side().Send(std::vector<float>(kEnvs, action)),
              ErrorCode::kOk);
  }
  static ErrorCode Poll(CallingClient& client) {
    return client.side().Recv(Deadline::Now());
  }
  static void ExpectSteps(CallingClient& client, float steps) {
    EXPECT_EQ(client.side().Recv(Deadline::After(20)), ErrorCode::kOk);
    for (uint32_t env = 0; env < kEnvs; ++env) {
      EXPECT_EQ(client.side().arrays().obs[3 * env], steps) << env;
    }
  }
  // Waits until no worker takes an exchange.
  // relaxed: the supervisor's words, which are only compared.
  static void AwaitHeld(CallingClient& client) {
    const RegionMapping& region = *client.side().mapping();
    const LrbcHeader& header = *region.header();
    const auto* const head =
        region.At<WorkersHeader>(client.side().plan().workers_offset);
    const auto is_held = [&](uint32_t worker) {
      return region.At<WorkerSlot>(WorkerSlotOffset(header, worker))
                 ->ack.load(std::memory_order_acquire) ==
             head->order.load(std::memory_order_relaxed);
    };
    AwaitTrue([&] {
      return head->order_kind.load(std::memory_order_relaxed) !=
                 static_cast<uint32_t>(WorkerOrder::kGo) &&
             is_held(0) && is_held(1);
    });
  }
  static void SetPaused(CallingClient& client, bool paused) {
    rpc::SetPausedRequestT request;
    request.paused = paused;
    client.Call(rpc::MethodId::SetPaused, 1, request);
    EXPECT_EQ(client.Await().payload.AsSetPausedResponse()->paused, paused);
  }

  const std::string name_ = UniqueRegionName("supervisor_host");
  pid_t supervisor_ = -1;
  int input_ = -1;
};

TEST_F(SupervisorHostTest, AnswersTheSchemaToTheClientAndToAttendants) {
  CallingClient client(name_);
  client.Call<rpc::GetAgentSchemaRequestT>(rpc::MethodId::GetAgentSchema, 1);
  const rpc::EnvelopeT answer = client.Await();
  ASSERT_EQ(answer.error_message, "");
  EXPECT_EQ(answer.correlation_id, 1u);
  Panel panel(name_);
  EXPECT_TRUE(
      panel.Call<rpc::GetAgentSchemaRequestT>(rpc::MethodId::GetAgentSchema)
          .ok());
}

TEST_F(SupervisorHostTest, RefusesByNameWhatNeedsAnEngineAlsoInAStep) {
  CallingClient client(name_);
  Panel panel(name_);
  Send(client, 1);
  client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 1);
  EXPECT_EQ(client.Await().error_code,
            static_cast<uint16_t>(ErrorCode::kUnsupported));
  const absl::Status refused = panel.GetJoints();
  EXPECT_EQ(CodeOf(refused), ErrorCode::kUnsupported) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "GetJointState")) << refused;
  ExpectSteps(client, 1);
}

TEST_F(SupervisorHostTest, RefusesStepsAndResetsByCalls) {
  CallingClient client(name_);
  SetPaused(client, true);
  rpc::SingleStepRequestT steps;
  steps.steps = 1;
  client.Call(rpc::MethodId::SingleStep, 2, steps);
  const rpc::EnvelopeT step = client.Await();
  EXPECT_EQ(step.error_code, static_cast<uint16_t>(ErrorCode::kUnsupported));
  EXPECT_TRUE(absl::StrContains(step.error_message, "fields"))
      << step.error_message;
  client.Call<rpc::ResetAgentRequestT>(rpc::MethodId::ResetAgent, 3);
  EXPECT_EQ(client.Await().error_code,
            static_cast<uint16_t>(ErrorCode::kUnsupported));
  SetPaused(client, false);
  Send(client, 1);
  ExpectSteps(client, 1);
}

TEST_F(SupervisorHostTest, AnAttendantsPauseHoldsTheWorkers) {
  CallingClient client(name_);
  Panel panel(name_);
  for (float step = 1; step <= 20; ++step) {
    EXPECT_TRUE(panel.SetPaused(true).ok());
    AwaitHeld(client);
    Send(client, step);
    EXPECT_EQ(Poll(client), ErrorCode::kStepTimeout);
    EXPECT_TRUE(panel.SetPaused(false).ok());
    ExpectSteps(client, step);
  }
}

TEST_F(SupervisorHostTest, ThePauseOfAKilledAttendantEnds) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t killed = fork();
  if (killed == 0) {
    Panel panel(name_, "killed");
    if (!panel.SetPaused(true).ok()) _exit(1);
    (void)!write(ends[1], "x", 1);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  CallingClient client(name_);
  AwaitHeld(client);
  Send(client, 1);
  EXPECT_EQ(Poll(client), ErrorCode::kStepTimeout);
  kill(killed, SIGKILL);
  EXPECT_EQ(waitpid(killed, nullptr, 0), killed);
  ExpectSteps(client, 1);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SupervisorHostTest, AClientsPauseEndsBeforeTheNextClientIsAdmitted) {
  for (int round = 0; round < 3; ++round) {
    CallingClient client(name_);
    // Else the workers would be held, and the exchange never be done.
    Send(client, 1);
    ExpectSteps(client, 1);
    SetPaused(client, true);
    AwaitHeld(client);
    Send(client, 2);
    EXPECT_EQ(Poll(client), ErrorCode::kStepTimeout);
  }
}

TEST_F(SupervisorHostTest, AnAttendantsPauseOutlivesTheClient) {
  Panel panel(name_);
  EXPECT_TRUE(panel.SetPaused(true).ok());
  { const CallingClient first(name_); }
  CallingClient client(name_);
  AwaitHeld(client);
  Send(client, 1);
  EXPECT_EQ(Poll(client), ErrorCode::kStepTimeout);
  EXPECT_TRUE(panel.SetPaused(false).ok());
  ExpectSteps(client, 1);
}

TEST_F(SupervisorHostTest, ARequestedFrameIsInTheRing) {
  CallingClient client(name_);
  absl::StatusOr<AttachedFrames> viewer = AttachedFrames::OpenRegion(name_);
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  for (uint8_t number = 1; number <= 5; ++number) {
    ASSERT_EQ(client.side().AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
    Frame frame;
    ASSERT_EQ(viewer->reader().Newest(&frame), FrameReader::Found::kFrame);
    EXPECT_EQ(frame.number, number);
    EXPECT_EQ(frame.pixels,
              std::vector<std::byte>(kFrames.FrameBytes(), std::byte{number}));
    EXPECT_EQ(frame.metadata, "frame");
    EXPECT_EQ(frame.metrics.last_reward, 1.5);
  }
}

TEST_F(SupervisorHostTest, AnInputThatIsLeftReadableHoldsUpNoCaller) {
  CallingClient client(name_);
  Panel panel(name_);
  ASSERT_EQ(write(input_, "x", 1), 1);
  for (float step = 1; step <= 100; ++step) {
    EXPECT_EQ(CodeOf(panel.GetJoints()), ErrorCode::kUnsupported);
    client.Call<rpc::GetAgentSchemaRequestT>(rpc::MethodId::GetAgentSchema,
                                             static_cast<uint64_t>(step));
    EXPECT_EQ(client.Await().error_code, 0);
    Send(client, step);
    ExpectSteps(client, step);
  }
}

TEST_F(SupervisorHostTest, AWorkersDeathReachesTheCallerAlsoBesideAnInput) {
  CallingClient client(name_);
  ASSERT_EQ(write(input_, "x", 1), 1);
  std::vector<float> actions(kEnvs, 1);
  actions.back() = kDie;  // of worker 1
  EXPECT_EQ(client.side().Send(actions), ErrorCode::kOk);
  const ErrorCode code = client.side().Recv(Deadline::After(20));
  EXPECT_EQ(code, ErrorCode::kPeerGone);
  EXPECT_TRUE(absl::StrContains(Explained(client.side(), code), "worker 1"))
      << Explained(client.side(), code);
}

}  // namespace
}  // namespace tandem
