// The host, with a real client in the same process.
#include "engine_adapter/engine_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "engine_adapter/engine.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 2;

// Observes the steps since the last reset, and the number of resets.
class FakeEngine final : public Engine {
 public:
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) {
      const size_t row = size_t{2} * request.env;
      io.obs[row] = 0;
      io.obs[row + 1] += 1;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return reset_status_;
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t i : envs) {
      if (io.actions[i] == 13) return absl::InternalError("unlucky");
      io.obs[size_t{2} * i] += 1;
      io.rewards[i] = io.actions[i];
      io.terminateds[i] = 0;
      io.truncateds[i] = 0;
    }
    return absl::OkStatus();
  }

  void FailResets(absl::string_view text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reset_status_ = absl::InternalError(text);
  }

 private:
  std::mutex mutex_;
  absl::Status reset_status_;  // guarded by mutex_
  EngineSchema schema_ = {
      .task = "Fake", .num_envs = kEnvs, .obs_size = 2, .act_size = 1};
};

// Observes the sum of its actions, both in fields; ends at a sum of 3 or more.
class SummingEngine final : public Engine {
 public:
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests)
      Sums(io.fields)[request.env] = 0;
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    const std::span<int32_t> actions =
        FindField(io.fields, FieldRole::kAction, "")->Values<int32_t>();
    for (const uint32_t i : envs) {
      Sums(io.fields)[i] += actions[i];
      io.terminateds[i] = Sums(io.fields)[i] >= 3 ? 1 : 0;
    }
    return absl::OkStatus();
  }

 private:
  static std::span<int64_t> Sums(std::span<const FieldArray> fields) {
    return FindField(fields, FieldRole::kObs, "/sum")->Values<int64_t>();
  }

  EngineSchema schema_ = {
      .task = "Summing",
      .num_envs = kEnvs,
      .obs_size = 0,
      .act_size = 0,
      .fields = {
          {.role = FieldRole::kObs, .type = FieldType::kInt64, .path = "/sum"},
          {.role = FieldRole::kAction, .type = FieldType::kInt32}}};
};

class EngineHostTest : public testing::Test {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override {
    host_.reset();
    EXPECT_NE(access(RegionPath(name_).c_str(), F_OK), 0);
    EXPECT_NE(
        access(RegionPath(name_, SharedRegion::Link::kSpare).c_str(), F_OK), 0);
    alarm(0);
  }

  absl::StatusOr<std::unique_ptr<EngineHost>> Create() {
    return EngineHost::Create(
        &engine_,
        {.name = name_, .seed = 0, .log = [this](absl::string_view line) {
           const std::lock_guard<std::mutex> lock(log_mutex_);
           log_.emplace_back(line);
         }});
  }
  void CreateHost() {
    auto host = Create();
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  absl::StatusOr<ClientSide> Attach() { return ClientSide::Attach(name_, {}); }
  ErrorCode Step(ClientSide& client, std::vector<float> actions) {
    const ErrorCode code = client.Send(actions);
    return code == ErrorCode::kOk ? client.Recv(Deadline::Infinite()) : code;
  }
  // Returns the number of log lines that contain the text.
  int Logged(absl::string_view text) {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    int lines = 0;
    for (const std::string& line : log_) {
      if (absl::StrContains(line, text)) ++lines;
    }
    return lines;
  }

  // Random: process ids are not unique in /dev/shm, since tests may run in
  // their own pid namespaces.
  const std::string name_ = UniqueRegionName("host-test");
  FakeEngine engine_;
  std::mutex log_mutex_;
  std::vector<std::string> log_;
  std::atomic<bool> stop_polling_ = false;
  std::unique_ptr<EngineHost> host_;
};

TEST_F(EngineHostTest, ServesAnEngineWhoseObservationsAndActionsAreFields) {
  SummingEngine engine;
  auto host = EngineHost::Create(&engine, {.name = name_});
  ASSERT_TRUE(host.ok()) << host.status();
  host_ = *std::move(host);
  host_->Start();
  {
    absl::StatusOr<ClientSide> client = Attach();
    ASSERT_TRUE(client.ok()) << client.status();
    const StepArrays& arrays = client->arrays();
    const auto sums = [&](FieldRole role) {
      const auto all = arrays.Find(role, "/sum")->Values<int64_t>();
      return std::vector<int64_t>(all.begin(), all.end());
    };
    const auto actions = arrays.Find(FieldRole::kAction, "")->Values<int32_t>();
    actions[0] = 1;
    actions[1] = 2;
    ASSERT_EQ(Step(*client, {}), ErrorCode::kOk);
    EXPECT_EQ(sums(FieldRole::kObs), (std::vector<int64_t>{1, 2}));
    ASSERT_EQ(Step(*client, {}), ErrorCode::kOk);
    EXPECT_EQ(sums(FieldRole::kObs), (std::vector<int64_t>{2, 0}));
    EXPECT_EQ(sums(FieldRole::kFinalObs)[1], 4);
    EXPECT_EQ(arrays.dones[1], 1);
  }
  host_.reset();  // before the engine
}

TEST_F(EngineHostTest, ServesAClientFromStartToStop) {
  CreateHost();
  EXPECT_FALSE(host_->IsRunning());
  host_->Start();
  EXPECT_TRUE(host_->IsRunning());
  absl::StatusOr<ClientSide> client = Attach();
  ASSERT_TRUE(client.ok()) << client.status();
  for (int step = 1; step <= 100; ++step) {
    ASSERT_EQ(Step(*client, {1, 2}), ErrorCode::kOk);
    EXPECT_EQ(client->arrays().obs[0], step);
    EXPECT_EQ(client->arrays().rewards[1], 2);
  }
  host_->Stop();
  EXPECT_FALSE(host_->IsRunning());
  host_->Stop();  // safe twice
  EXPECT_EQ(Logged("client attached"), 1);
}

TEST_F(EngineHostTest, ARunningEngineThatIsDestroyedIsGoneForItsClient) {
  CreateHost();
  host_->Start();
  absl::StatusOr<ClientSide> client = Attach();
  ASSERT_TRUE(client.ok()) << client.status();
  host_.reset();
  const ErrorCode sent = client->Send(std::vector<float>{1, 2});
  EXPECT_EQ(sent == ErrorCode::kOk ? client->Recv(Deadline::Infinite()) : sent,
            ErrorCode::kPeerGone);
}

TEST_F(EngineHostTest, TheFirstClientFindsTheFirstEpisodesAndTheNextNewOnes) {
  CreateHost();
  host_->Start();
  for (int client_number = 1; client_number <= 3; ++client_number) {
    absl::StatusOr<ClientSide> client = Attach();
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(client->arrays().obs[0], 0);
    if (client_number == 1) {
      EXPECT_EQ(client->arrays().obs[1], 1);  // reset once, with a seed
    } else {
      EXPECT_GE(client->arrays().obs[1], static_cast<float>(client_number));
    }
    ASSERT_EQ(Step(*client, {1, 2}), ErrorCode::kOk);
  }
}

TEST_F(EngineHostTest, AFailedStepReachesTheClientAndTheHostServesOn) {
  CreateHost();
  host_->Start();
  absl::StatusOr<ClientSide> client = Attach();
  ASSERT_TRUE(client.ok()) << client.status();
  const ErrorCode code = Step(*client, {13, 1});
  EXPECT_EQ(code, ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(client->Explain(code).message(), "unlucky"))
      << client->Explain(code);
  EXPECT_EQ(Step(*client, {13, 1}), ErrorCode::kEngineFailed);
  EXPECT_EQ(Step(*client, {1, 1}), ErrorCode::kOk);
  EXPECT_EQ(Step(*client, {13, 1}), ErrorCode::kEngineFailed);
  host_->Stop();
  EXPECT_EQ(Logged("unlucky"), 2);  // equal successive lines are one line
}

TEST_F(EngineHostTest, AnEngineThatCannotResetOpensNoRegion) {
  engine_.FailResets("no model");
  const auto host = Create();
  EXPECT_TRUE(absl::StrContains(host.status().message(), "no model"));
}

TEST_F(EngineHostTest, AClientIsRefusedWhileResetsFail) {
  CreateHost();
  host_->Start();
  {
    absl::StatusOr<ClientSide> first = Attach();
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_EQ(Step(*first, {1, 1}), ErrorCode::kOk);
    engine_.FailResets("out of props");
  }
  const absl::StatusOr<ClientSide> second = Attach();
  EXPECT_EQ(CodeOf(second.status()), ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(second.status().message(), "out of props"))
      << second.status();
  host_->Stop();
  EXPECT_EQ(Logged("client refused"), 1);
}

TEST_F(EngineHostTest, ASecondHostOfTheNameIsRefused) {
  CreateHost();
  EXPECT_EQ(CodeOf(Create().status()), ErrorCode::kAlreadyAttached);
}

TEST_F(EngineHostTest, PollServesAnEngineThatOwnsItsLoop) {
  CreateHost();
  EXPECT_FALSE(host_->Poll());
  EXPECT_FALSE(host_->IsRunning());
  std::thread loop([this] {
    while (!stop_polling_.load(std::memory_order_relaxed)) host_->Poll();
  });
  {
    absl::StatusOr<ClientSide> client = Attach();
    EXPECT_TRUE(client.ok()) << client.status();
    for (int step = 1; client.ok() && step <= 20; ++step) {
      EXPECT_EQ(Step(*client, {1, 2}), ErrorCode::kOk);
      EXPECT_EQ(client->arrays().obs[0], step);
    }
  }
  stop_polling_.store(true, std::memory_order_relaxed);
  loop.join();
}

TEST_F(EngineHostTest, AStopBeforeRunEndsItAtOnce) {
  CreateHost();
  host_->RequestStop();
  host_->Run();
  EXPECT_FALSE(host_->IsRunning());
}

}  // namespace
}  // namespace tandem
