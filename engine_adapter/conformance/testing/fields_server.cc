// An engine with typed fields, frames, images and a contract, which keeps all
// rules; with --fault it breaks one. For tests of the suite.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/server_main.h"
#include "schema/messages/hazel_rpc_generated.h"

ABSL_FLAG(uint32_t, truncate_after, 0, "steps of an episode; 0: no limit");
ABSL_FLAG(std::string, fault, "",
          "reset, reward, image, frame, contract or hang: the rule to break; "
          "empty: none");

namespace tandem {
namespace {

bool Has(absl::string_view fault) {
  return absl::GetFlag(FLAGS_fault) == fault;
}

struct Env {
  std::mt19937_64 random{std::random_device()()};
  std::optional<std::mt19937_64> contract;  // of its draws
  int32_t place = 0;
  uint32_t steps = 0;
};
using Envs = std::vector<Env>;

// Fills an environment's image with bytes of its place.
class PlaceFrames final : public FrameSource {
 public:
  explicit PlaceFrames(const Envs* envs) : envs_(envs) {}

  absl::Status Prepare(const FrameOptions& options) override {
    shown_ = options.envs;
    places_.resize(shown_.size());
    return absl::OkStatus();
  }
  void Capture(uint32_t place) override {
    places_[place] = Has("image") ? ++captures_ : (*envs_)[shown_[place]].place;
  }
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Draw(uint32_t place, const FrameTile& tile) override {
    if (Has("frame")) raise(SIGKILL);
    for (size_t row = 0; row < tile.rows; ++row) {
      std::memset(tile.first + row * tile.stride, places_[place] & 0xFF,
                  tile.row_bytes);
    }
    return absl::OkStatus();
  }
  void Stop() override {}

 private:
  const Envs* envs_;
  std::vector<uint32_t> shown_;
  std::vector<int32_t> places_;
  int32_t captures_ = 0;
};

// Walks by its actions, from a random place, which a contract's friction moves.
class Walk final : public Engine, private RandomizationPort {
 public:
  explicit Walk(uint32_t num_envs) : envs_(num_envs) {
    schema_.num_envs = num_envs;
  }

  const EngineSchema& schema() const override { return schema_; }
  FrameSource* frames() override { return &frames_; }
  FrameSource* images() override { return &images_; }
  EnginePorts ports() override { return {.randomization = this}; }
  void ClearClientState() override {
    for (Env& env : envs_) env.contract.reset();
  }

  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) {
      Env& env = envs_[request.env];
      if (request.seed) env.random.seed(*request.seed);
      env.place = static_cast<int32_t>(env.random() % 1'000'000'000);
      if (env.contract) {
        env.place += static_cast<int32_t>((*env.contract)() % 1'000'000);
      }
      env.steps = 0;
      if (!Has("reset")) Observe(request.env, io.fields);
    }
    return absl::OkStatus();
  }

  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    while (Has("hang")) pause();
    const auto actions =
        FindField(io.fields, FieldRole::kAction, "")->Values<int16_t>();
    const auto rewards =
        FindField(io.fields, FieldRole::kReward, "")->Values<double>();
    for (const uint32_t i : envs) {
      Env& env = envs_[i];
      env.place += std::max<int16_t>(actions[i], 1);
      rewards[i] = actions[i] + 0.1;
      io.rewards[i] = static_cast<float>(Has("reward") ? 0 : rewards[i]);
      io.terminateds[i] = 0;
      io.truncateds[i] = ++env.steps == absl::GetFlag(FLAGS_truncate_after);
      Observe(i, io.fields);
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) override {
    const bool used = contract != nullptr && !contract->friction_range.empty();
    for (const uint32_t i : envs) {
      envs_[i].contract.reset();
      if (!used) continue;
      const bool draws = seed && !Has("contract");
      envs_[i].contract.emplace(draws ? *seed + i : std::random_device()());
    }
    std::vector<std::string> unused;
    if (contract != nullptr && !contract->terrain_type.empty()) {
      unused.emplace_back("terrain_type");
    }
    return unused;
  }

  void Observe(uint32_t i, std::span<const FieldArray> fields) {
    const int32_t place = envs_[i].place;
    FindField(fields, FieldRole::kObs, "/place")->Values<int32_t>()[i] = place;
    std::ranges::fill(FindField(fields, FieldRole::kObs, "/pixels")->Row(i),
                      static_cast<std::byte>(place));
  }

  Envs envs_;
  PlaceFrames frames_{&envs_};
  PlaceFrames images_{&envs_};
  EngineSchema schema_ = {
      .task = "Walk",
      .fields = {{.role = FieldRole::kObs,
                  .type = FieldType::kInt32,
                  .path = "/place"},
                 {.role = FieldRole::kObs,
                  .type = FieldType::kUint8,
                  .shape = {4, 4, 3},
                  .path = "/pixels"},
                 {.role = FieldRole::kAction, .type = FieldType::kInt16},
                 {.role = FieldRole::kReward, .type = FieldType::kFloat64}}};
};

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  return tandem::RunServer(
      argc, argv, "Serves walks, whose places are fields.",
      [](const tandem::ServerOptions& options)
          -> absl::StatusOr<std::unique_ptr<tandem::Engine>> {
        return std::make_unique<tandem::Walk>(options.num_envs);
      });
}
