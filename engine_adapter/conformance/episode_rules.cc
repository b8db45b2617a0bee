// Episodes: their ends, in each mode of autoreset and for each kind of client.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/unique_fd.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "engine_adapter/conformance/header_only_client.h"
#include "engine_adapter/conformance/suite_arguments.h"
#include "transport/client_side.h"

namespace tandem {
namespace {

using Episodes = RulesFor<Capability::kLimit, Capability::kHostObservations>;

// What an episode's last step gives is in final_obs and final_infos with one
// mode, and in obs and infos with the other.
TEST_F(Episodes, SameStepKeepsTheLastObservationsAndInfos) {
  std::pair<Observation, std::vector<double>> last[2];
  for (const AutoresetMode mode :
       {AutoresetMode::kSameStep, AutoresetMode::kNextStep}) {
    ServeEpisodes(2, mode);
    Reset({0, 1, 2}, 7);
    Step(0);
    Step(1);
    if (mode == AutoresetMode::kSameStep) {
      last[0] = {AllFinalObs(), Copy(arrays().final_infos)};
    } else {
      last[1] = {AllObs(), Copy(arrays().infos)};
    }
    engine_.End();
  }
  EXPECT_EQ(last[0], last[1]);
}

TEST_F(Episodes, AFlaggedEnvironmentIsResetAndNotStepped) {
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

TEST_F(Episodes, SameStepResetsAtOnceAndKeepsTheLastObservation) {
  ServeEpisodes(3, AutoresetMode::kSameStep);
  for (int episode = 0; episode < 3; ++episode) {
    Step();
    Step();
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
    Step();
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 1));
    EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, 1));
    EXPECT_EQ(Copy(arrays().terminateds), Flags(kEnvs, 0));
    EXPECT_NE(AllFinalObs(), AllObs());
    EXPECT_TRUE(AllFinite(arrays(), FieldRole::kFinalObs));
  }
}

TEST_F(Episodes, NextStepResetsWithTheNextStep) {
  ServeEpisodes(2, AutoresetMode::kNextStep);
  for (int episode = 0; episode < 3; ++episode) {
    Step();
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
    Step();
    EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, 1));
    const Observation last = AllObs();
    Step();  // its actions are not applied
    EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
    EXPECT_EQ(Copy(arrays().rewards), Floats(kEnvs, 0));
    EXPECT_NE(AllObs(), last);
  }
}

TEST_F(Episodes, DisabledResetsOnlyWhatTheClientFlags) {
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

TEST_F(Episodes, AHeaderOnlyClientGetsStepsAndSameStep) {
  ServeEpisodes(2, AutoresetMode::kDisabled);
  engine_.client.reset();
  HeaderOnlyClient foreign(engine_.name);
  // The first exchange could come before the engine has detected the other
  // client's exit; then that client's mode would still be in effect.
  while (!absl::StrContains(engine_.server->Stderr(), "client left") &&
         !engine_.server->HasEnded()) {
    usleep(1000);
  }
  FillActions(foreign.arrays(), ActionOf(0));
  for (int episode = 0; episode < 3; ++episode) {
    foreign.Step();
    EXPECT_EQ(Copy(foreign.arrays().dones), Flags(kEnvs, 0));
    foreign.Step();
    EXPECT_EQ(Copy(foreign.arrays().dones), Flags(kEnvs, 1));
  }
}

TEST_F(Episodes, ServesTheNextClientAfreshWhenOneIsKilled) {
  engine_.Start({absl::StrCat("--", SuiteArguments::Get().limit_flag, "=4")});
  for (const bool mid_exchange : {false, true}) {
    std::array<int, 2> ready;
    ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      absl::StatusOr<ClientSide> client = ClientSide::Attach(
          engine_.name, {.timeout_secs = static_cast<double>(
                             SuiteArguments::Get().rule_secs)});
      if (!client.ok()) _exit(1);
      FillActions(client->arrays(), ActionOf(0));
      for (int step = 0; step < 3; ++step) {
        if (client->Send(client->arrays().actions) != ErrorCode::kOk) _exit(2);
        if (step == 2 && mid_exchange) break;
        if (client->Recv(Deadline::Infinite()) != ErrorCode::kOk) _exit(3);
      }
      (void)!write(ready[1], "x", 1);
      raise(SIGKILL);
    }
    const UniqueFd read_end(ready[0]);
    UniqueFd(ready[1]).reset();
    char byte = 0;
    ASSERT_EQ(read(read_end.get(), &byte, 1), 1) << engine_.server->Stderr();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    Attach(AutoresetMode::kDisabled);
    EXPECT_TRUE(ObsIsFinite());
    // The limit comes after four more steps, not after one.
    for (int step = 1; step <= 4; ++step) {
      Step();
      EXPECT_EQ(Copy(arrays().truncateds), Flags(kEnvs, step == 4 ? 1 : 0));
    }
    engine_.client.reset();
  }
}

}  // namespace
}  // namespace tandem
