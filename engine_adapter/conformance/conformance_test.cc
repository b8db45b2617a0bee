// The required behaviour of every engine server, checked through its region.
//
// The BUILD file instantiates the suite once for each server, by arguments that
// suite_arguments.h explains.
//
// Length: one fixture and one short, independent test for each rule.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"
#include "engine_adapter/conformance/header_only_client.h"
#include "engine_adapter/conformance/server_process.h"
#include "engine_adapter/conformance/suite_arguments.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_methods.h"
#include "transport/client_side.h"
#include "transport/envelope.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"
#include "transport/rpc_client.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 3;
constexpr double kAttachSecs = 60;

using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;

template <typename T>
std::vector<T> Copy(std::span<T> values) {
  return std::vector<T>(values.begin(), values.end());
}

float ActionOf(size_t step) {
  const std::vector<float>& actions = SuiteArguments::Get().actions;
  return actions[step % actions.size()];
}

// Returns a call of the method whose request has no field.
PackedCall EmptyCall(rpc::MethodId method) {
  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<void> request(
      builder.EndTable(builder.StartTable()));
  return {&builder, method, PayloadsOf(method).request, request};
}

class EngineConformance : public testing::Test {
 protected:
  void SetUp() override { alarm(120); }
  void TearDown() override {
    client_.reset();
    server_.reset();
    alarm(0);
  }

  std::vector<std::string> Command(const std::vector<std::string>& flags) {
    std::vector<std::string> command = SuiteArguments::Get().server;
    command.push_back(absl::StrCat("--name=", name_));
    command.push_back(absl::StrCat("--num_envs=", kEnvs));
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  void StartServer(const std::vector<std::string>& flags = {}) {
    server_ = std::make_unique<ServerProcess>(Command(flags));
  }
  void Attach(AutoresetMode autoreset = AutoresetMode::kSameStep) {
    client_.reset();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(
        name_, {.timeout_secs = kAttachSecs, .autoreset = autoreset});
    ASSERT_TRUE(client.ok()) << client.status() << "\n" << server_->Stderr();
    ASSERT_TRUE(client->arrays().obs_size > 0 && client->arrays().act_size > 0)
        << "expected observations and actions in float32 rows, which this "
           "suite compares, found fields of other types";
    client_.emplace(*std::move(client));
  }
  void Begin() {
    StartServer();
    Attach();
  }
  // Starts a server with episodes of `steps` steps, and attaches the client.
  void ServeEpisodes(int steps, AutoresetMode autoreset) {
    StartServer(
        {absl::StrCat("--", SuiteArguments::Get().limit_flag, "=", steps)});
    Attach(autoreset);
  }

  const StepArrays& arrays() { return client_->arrays(); }
  Floats Obs(uint32_t env) {
    const uint32_t size = arrays().obs_size;
    return Copy(arrays().obs.subspan(size_t{env} * size, size));
  }
  bool AllFinite() {
    return std::all_of(arrays().obs.begin(), arrays().obs.end(),
                       [](float value) { return std::isfinite(value); });
  }

  void Receive() {
    const ErrorCode code = client_->Recv(Deadline::Infinite());
    ASSERT_EQ(code, ErrorCode::kOk) << client_->Explain(code);
  }
  void Step(size_t step = 0) {
    const Floats actions(arrays().actions.size(), ActionOf(step));
    const ErrorCode code = client_->Send(actions);
    ASSERT_EQ(code, ErrorCode::kOk) << client_->Explain(code);
    Receive();
  }
  void Reset(const std::vector<int64_t>& envs, std::optional<uint64_t> seed) {
    const std::vector<std::optional<uint64_t>> seeds(envs.size(), seed);
    const ErrorCode code = client_->SendReset(envs, seeds);
    ASSERT_EQ(code, ErrorCode::kOk) << client_->Explain(code);
    Receive();
  }

  bool AnyTraceInSharedMemory() {
    return access(RegionPath(name_).c_str(), F_OK) == 0 ||
           access(RegionPath(name_, SharedRegion::Link::kSpare).c_str(),
                  F_OK) == 0;
  }

  // Random: process ids are not unique in /dev/shm, since tests may run in
  // their own pid namespaces.
  const std::string name_ = UniqueRegionName("conformance");
  std::unique_ptr<ServerProcess> server_;
  std::optional<ClientSide> client_;
};

TEST_F(EngineConformance, AClientFindsSizesAndAFirstObservation) {
  Begin();
  EXPECT_EQ(arrays().num_envs, kEnvs);
  EXPECT_GE(arrays().obs_size, 1);
  EXPECT_GE(arrays().act_size, 1);
  EXPECT_NE(client_->plan().task[0], '\0');
  EXPECT_TRUE(AllFinite());
  EXPECT_EQ(Copy(arrays().rewards), Floats(kEnvs, 0));
  EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
}

TEST_F(EngineConformance, TheDescriptionFitsTheArrays) {
  Begin();
  const InfosPlan infos = InfosOf(client_->plan());
  const std::string text(client_->mapping()->At<char>(infos.description),
                         infos.description_bytes);
  if (text.empty()) {
    EXPECT_EQ(arrays().info_size, 0);
    return;
  }
  const auto description = nlohmann::json::parse(text);
  EXPECT_EQ(description.at("observation_space").at("shape").at(0),
            arrays().obs_size);
  uint32_t columns = 0;
  for (const auto& info : description.at("infos")) {
    const auto& length = info.at("length");
    columns += length.is_null() ? 1 : length.get<uint32_t>();
  }
  EXPECT_EQ(columns, arrays().info_size);
}

TEST_F(EngineConformance, FieldsAreAlignedAndObservationsHaveAFinalOne) {
  Begin();
  if (arrays().fields.empty()) GTEST_SKIP() << "an engine without fields";
  for (const FieldArray& field : arrays().fields) {
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(field.data.data()) % kPromisedAlignment, 0u)
        << field.path;
    EXPECT_EQ(field.data.size(), size_t{kEnvs} * field.row_bytes);
    if (field.role != FieldRole::kObs) continue;
    const FieldArray* const last =
        arrays().Find(FieldRole::kFinalObs, field.path);
    ASSERT_NE(last, nullptr) << field.path;
    EXPECT_EQ(last->type, field.type);
    EXPECT_EQ(last->shape, field.shape);
  }
}

// The infos of an episode's last step are in final_infos with one mode, and in
// infos with the other.
TEST_F(EngineConformance, SameStepKeepsTheLastInfos) {
  std::vector<double> last[2];
  for (const AutoresetMode mode :
       {AutoresetMode::kSameStep, AutoresetMode::kNextStep}) {
    ServeEpisodes(2, mode);
    Reset({0, 1, 2}, 7);
    Step(0);
    Step(1);
    const bool same_step = mode == AutoresetMode::kSameStep;
    last[same_step] = Copy(same_step ? arrays().final_infos : arrays().infos);
    TearDown();
  }
  EXPECT_EQ(last[0], last[1]);
}

TEST_F(EngineConformance, ResetKeepsTheInfosOfOtherEnvironments) {
  Begin();
  Step();
  const std::vector<double> before = Copy(arrays().infos);
  Reset({0}, 7);
  const std::vector<double> after = Copy(arrays().infos);
  const auto others = static_cast<ptrdiff_t>(arrays().info_size);
  EXPECT_TRUE(std::equal(before.begin() + others, before.end(),
                         after.begin() + others));
}

TEST_F(EngineConformance, AStepStepsEveryEnvironment) {
  Begin();
  Reset({0, 1, 2}, 1);
  for (int step = 0; step < 20; ++step) {
    std::vector<Floats> before;
    for (uint32_t env = 0; env < kEnvs; ++env) before.push_back(Obs(env));
    Step();
    for (uint32_t env = 0; env < kEnvs; ++env) {
      EXPECT_NE(Obs(env), before[env]) << step << " " << env;
    }
    ASSERT_TRUE(AllFinite());
  }
}

TEST_F(EngineConformance, ResetOnlyLeavesTheOthersUntouched) {
  Begin();
  for (int step = 0; step < 5; ++step) Step();
  const std::vector<Floats> before = {Obs(0), Obs(1), Obs(2)};
  const Floats rewards = Copy(arrays().rewards);
  Reset({1}, std::nullopt);
  EXPECT_EQ(Obs(0), before[0]);
  EXPECT_NE(Obs(1), before[1]);
  EXPECT_EQ(Obs(2), before[2]);
  EXPECT_EQ(arrays().rewards[0], rewards[0]);
  EXPECT_EQ(arrays().rewards[1], 0);
  EXPECT_EQ(arrays().rewards[2], rewards[2]);
  EXPECT_EQ(Copy(arrays().resets), Flags(kEnvs, 0));
}

TEST_F(EngineConformance, ResetOfNoEnvironmentChangesNothing) {
  Begin();
  Step();
  const Floats before = Copy(arrays().obs);
  Reset({}, std::nullopt);
  EXPECT_EQ(Copy(arrays().obs), before);
}

TEST_F(EngineConformance, TheSameSeedStartsTheSameTrajectory) {
  Begin();
  const auto trajectory = [&] {
    Floats all;
    const auto add = [&] {
      for (const float value : Obs(1)) all.push_back(value);
      all.push_back(arrays().rewards[1]);
    };
    Reset({1}, 17);
    add();
    for (size_t step = 0; step < 10; ++step) {
      Step(step);
      add();
    }
    return all;
  };
  const Floats first = trajectory();
  Step();
  EXPECT_EQ(trajectory(), first);
}

TEST_F(EngineConformance, ServersWithTheSameSeedStartAlike) {
  StartServer({"--seed=5"});
  Attach();
  const Floats first = Copy(arrays().obs);
  client_.reset();
  server_->Signal(SIGTERM);
  ASSERT_EQ(server_->ExitCode(), 0);
  StartServer({"--seed", "5"});
  Attach();
  EXPECT_EQ(Copy(arrays().obs), first);
}

TEST_F(EngineConformance, AFlaggedEnvironmentIsResetAndNotStepped) {
  ServeEpisodes(4, AutoresetMode::kDisabled);
  Step();
  Step();
  arrays().resets[0] = kResetRequested;
  Step();
  EXPECT_EQ(arrays().rewards[0], 0);
  EXPECT_EQ(Copy(arrays().resets), Flags(kEnvs, 0));
  Step();  // the fourth step of environments 1 and 2, the first of 0
  EXPECT_EQ(Copy(arrays().truncateds), (Flags{0, 1, 1}));
  EXPECT_EQ(Copy(arrays().dones), (Flags{0, 1, 1}));
}

TEST_F(EngineConformance, SameStepResetsAtOnceAndKeepsTheLastObservation) {
  ServeEpisodes(3, AutoresetMode::kSameStep);
  for (int episode = 0; episode < 3; ++episode) {
    Step();
    Step();
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
    Step();
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 1));
    EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, 1));
    EXPECT_EQ(Copy(arrays().terminateds), Flags(kEnvs, 0));
    EXPECT_NE(Copy(arrays().final_obs), Copy(arrays().obs));
    for (const float value : arrays().final_obs) {
      EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST_F(EngineConformance, NextStepResetsWithTheNextStep) {
  ServeEpisodes(2, AutoresetMode::kNextStep);
  for (int episode = 0; episode < 3; ++episode) {
    Step();
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
    Step();
    EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, 1));
    const Floats last = Copy(arrays().obs);
    Step();  // its actions are not applied
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
    EXPECT_EQ(Copy(arrays().rewards), Floats(kEnvs, 0));
    EXPECT_NE(Copy(arrays().obs), last);
  }
}

TEST_F(EngineConformance, DisabledResetsOnlyWhatTheClientFlags) {
  ServeEpisodes(2, AutoresetMode::kDisabled);
  Step();
  Step();
  EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, 1));
  Reset({0, 2}, std::nullopt);
  EXPECT_EQ(Copy(arrays().dones), (Flags{0, 1, 0}));
  Step();
  EXPECT_EQ(arrays().dones[0], 0);
  EXPECT_EQ(arrays().dones[2], 0);
  Step();
  EXPECT_EQ(arrays().dones[0], 1);
  EXPECT_EQ(arrays().dones[2], 1);
}

TEST_F(EngineConformance, SurvivesNonFiniteActions) {
  StartServer();
  Attach();  // waits for the region
  client_.reset();
  {
    HeaderOnlyClient foreign(name_);
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float bad : {std::nanf(""), infinity, -infinity, 1e38F}) {
      for (float& action : foreign.arrays().actions) action = bad;
      foreign.Step();
      foreign.Step();
    }
  }
  Attach();
  Reset({0, 1, 2}, 3);
  EXPECT_TRUE(AllFinite());
  for (int step = 0; step < 5; ++step) {
    Step();
    EXPECT_TRUE(AllFinite());
  }
}

TEST_F(EngineConformance, AHeaderOnlyClientGetsStepsAndSameStep) {
  StartServer({absl::StrCat("--", SuiteArguments::Get().limit_flag, "=2")});
  Attach(AutoresetMode::kDisabled);
  client_.reset();
  HeaderOnlyClient foreign(name_);
  // The first exchange could come before the engine has detected the other
  // client's exit; then that client's mode would still be in effect.
  while (!absl::StrContains(server_->Stderr(), "client left")) usleep(1000);
  for (float& action : foreign.arrays().actions) action = ActionOf(0);
  for (int episode = 0; episode < 3; ++episode) {
    foreign.Step();
    EXPECT_EQ(Copy(foreign.arrays().dones), Flags(kEnvs, 0));
    foreign.Step();
    EXPECT_EQ(Copy(foreign.arrays().dones), Flags(kEnvs, 1));
  }
}

TEST_F(EngineConformance, ServesTheNextClientAfreshWhenOneIsKilled) {
  StartServer({absl::StrCat("--", SuiteArguments::Get().limit_flag, "=4")});
  for (const bool mid_exchange : {false, true}) {
    std::array<int, 2> ready;
    ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);
      absl::StatusOr<ClientSide> client =
          ClientSide::Attach(name_, {.timeout_secs = kAttachSecs});
      if (!client.ok()) _exit(1);
      const Floats actions(client->arrays().actions.size(), ActionOf(0));
      for (int step = 0; step < 3; ++step) {
        if (client->Send(actions) != ErrorCode::kOk) _exit(2);
        if (step == 2 && mid_exchange) break;
        if (client->Recv(Deadline::Infinite()) != ErrorCode::kOk) _exit(3);
      }
      (void)!write(ready[1], "x", 1);
      raise(SIGKILL);
    }
    const UniqueFd read_end(ready[0]);
    UniqueFd(ready[1]).reset();
    char byte = 0;
    ASSERT_EQ(read(read_end.get(), &byte, 1), 1) << server_->Stderr();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    Attach(AutoresetMode::kDisabled);
    EXPECT_TRUE(AllFinite());
    // The limit comes after four more steps, not after one.
    for (int step = 1; step <= 4; ++step) {
      Step();
      EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, step == 4 ? 1 : 0));
    }
    client_.reset();
  }
}

TEST_F(EngineConformance, ASecondClientIsRefused) {
  Begin();
  const absl::StatusOr<ClientSide> second =
      ClientSide::Attach(name_, {.timeout_secs = kAttachSecs});
  EXPECT_EQ(CodeOf(second.status()), ErrorCode::kAlreadyAttached);
  Step();
}

// An engine serves any services; an empty request may be invalid. Images are
// left out: a renderer may take long to start.
TEST_F(EngineConformance, EveryMethodOfItsServicesIsAnswered) {
  Begin();
  const auto caller = RpcClient::Create(&*client_, {});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const auto call = [&](rpc::MethodId method) {
    return (*caller)->Call(EmptyCall(method), Deadline::Infinite());
  };
  const absl::StatusOr<RpcMessage> listed = call(rpc::MethodId::GetServices);
  ASSERT_TRUE(listed.ok()) << listed.status();
  const rpc::GetServicesResponse* const list =
      listed->envelope().payload_as_GetServicesResponse();
  ASSERT_NE(list, nullptr);
  rpc::GetServicesResponseT services;
  list->UnPackTo(&services);
  for (const auto& service : services.services) {
    for (const rpc::MethodId method : service->methods) {
      const rpc::Payload expected = PayloadsOf(method).answer;
      if (expected == rpc::Payload::NamedImageFrame ||
          expected == rpc::Payload::ImageFrame) {
        continue;
      }
      const absl::StatusOr<RpcMessage> answer = call(method);
      const ErrorCode code = CodeOf(answer.status());
      EXPECT_TRUE(code == ErrorCode::kOk ||
                  code == ErrorCode::kInvalidArgument ||
                  code == ErrorCode::kUnsupported)
          << rpc::EnumNameMethodId(method) << ": " << answer.status();
      if (answer.ok()) {
        EXPECT_EQ(answer->envelope().payload_type(), expected);
      }
    }
  }
  Step();
}

class EngineStop : public EngineConformance,
                   public testing::WithParamInterface<int> {};

TEST_P(EngineStop, SignalStopsEngineAndClientGetsPeerGone) {
  Begin();
  Step();
  server_->Signal(GetParam());
  server_->Signal(GetParam());  // timeout(1) and terminals send it twice
  EXPECT_EQ(server_->ExitCode(), 0) << server_->Stderr();
  EXPECT_FALSE(AnyTraceInSharedMemory());
  const Floats actions(arrays().actions.size());
  ErrorCode code = client_->Send(actions);
  if (code == ErrorCode::kOk) code = client_->Recv(Deadline::Infinite());
  EXPECT_EQ(code, ErrorCode::kPeerGone);
}

INSTANTIATE_TEST_SUITE_P(Signals, EngineStop, testing::Values(SIGTERM, SIGINT));

TEST_F(EngineConformance, ExitsWhenItsLauncherExits) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  server_ = std::make_unique<ServerProcess>(
      Command({absl::StrCat("--launcher_fd=", read_end.get())}),
      read_end.get());
  read_end.reset();
  Attach();
  Step();
  write_end.reset();
  EXPECT_EQ(server_->ExitCode(), 0);
  EXPECT_FALSE(AnyTraceInSharedMemory());
  EXPECT_TRUE(absl::StrContains(server_->Stderr(), "launcher"))
      << server_->Stderr();
}

TEST_F(EngineConformance, ASecondEngineOfTheNameIsRefused) {
  Begin();
  ServerProcess second(Command({}));
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_TRUE(absl::StrContains(second.Stderr(), "AlreadyAttached"))
      << second.Stderr();
  Step();  // the first engine still serves
}

TEST_F(EngineConformance, RunsWithoutStandardStreams) {
  std::vector<std::string> command = {"/bin/sh", "-c",
                                      "exec \"$@\" <&- >&- 2>&-", "sh"};
  for (const std::string& word : Command({})) command.push_back(word);
  server_ = std::make_unique<ServerProcess>(command);
  Attach();
  Step();
}

// The limit is necessary: memory may have room for all of a small engine.
TEST_F(EngineConformance, SizesBeyondMemoryPrintOneLine) {
  for (const char* envs : {"4294967295", "16777216"}) {
    std::vector<std::string> command = {
        "/bin/sh", "-c", "ulimit -v 1000000 && exec \"$@\"", "sh"};
    for (std::string& word : Command({absl::StrCat("--num_envs=", envs)})) {
      command.push_back(std::move(word));
    }
    ServerProcess server(command);
    EXPECT_GT(server.ExitCode(), 0) << envs;
    EXPECT_TRUE(absl::StrContains(server.Stderr(), "error: "))
        << server.Stderr();
    EXPECT_FALSE(AnyTraceInSharedMemory());
  }
}

TEST_F(EngineConformance, AKilledEngineCanBeStartedAgainUnderItsName) {
  Begin();
  Step();
  server_->Signal(SIGKILL);
  ASSERT_EQ(server_->ExitCode(), -1);
  const Floats actions(arrays().actions.size());
  ErrorCode code = client_->Send(actions);
  if (code == ErrorCode::kOk) code = client_->Recv(Deadline::Infinite());
  EXPECT_EQ(code, ErrorCode::kPeerGone);
  StartServer();
  const absl::Status status = client_->Reconnect(kAttachSecs);
  ASSERT_TRUE(status.ok()) << status << "\n" << server_->Stderr();
  Step();
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->ExitCode(), 0);
  EXPECT_FALSE(AnyTraceInSharedMemory());
}

TEST_F(EngineConformance, WrongCommandLinePrintsOneLineAndExitsWith2) {
  for (const std::string flag :
       {"--no_such_flag", "--num_envs=many", "--num_envs=0", "--wait=never",
        "--name=a/b", "--launcher_fd=987"}) {
    ServerProcess server(Command({flag}));
    EXPECT_EQ(server.ExitCode(), 2) << flag;
    const std::string text = server.Stderr();
    EXPECT_TRUE(absl::StrContains(text, "error: InvalidArgument: ")) << text;
    EXPECT_TRUE(absl::StrContains(text, "expected")) << text;
  }
  EXPECT_FALSE(AnyTraceInSharedMemory());
}

TEST_F(EngineConformance, HelpListsFlags) {
  ServerProcess server(Command({"--help"}));
  EXPECT_EQ(server.ExitCode(), 0);
  EXPECT_EQ(server.Stderr(), "");
}

}  // namespace

// Ends a test at its first fatal failure, also in a helper function: the test
// would go on without a client.
class EndsTest : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.fatally_failed()) throw testing::AssertionException(result);
  }
};

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new EndsTest);
  if (!SuiteArguments::Parse({argv + 1, argv + argc})) {
    ADD_FAILURE() << "expected --limit_flag=FLAG [--actions=A,B,...] SERVER "
                     "[FLAG ...]";
    return 2;
  }
  return RUN_ALL_TESTS();
}

}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
