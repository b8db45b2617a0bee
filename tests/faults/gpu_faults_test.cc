// Kills an engine with arrays on a GPU, and its client, before each store to
// shared memory and at each system call of an exchange. The driver is the
// stand-in, which does all tasks in their calls: the victims have one thread.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/field.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/every_access.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/client_side.h"
#include "transport/exported_arrays.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"
#include "transport/gpu/testing/standin_library.h"
#include "transport/imported_arrays.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = CountingServer::kEnvs;
constexpr uint32_t kObsSize = 2;
using Observations = std::array<float, kEnvs * kObsSize>;

// Its results are CountingServer's, in the region and on the GPU.
class GpuCounter final : public EngineBase {
 public:
  const EngineSchema& schema() const override { return schema_; }

  bool Do(const EngineWork& work, const ExportedArrays& gpu,
          const PrimaryContext& context) {
    for (const ResetRequest& request : work.resets) {
      counts_[request.env] = 0;
      Observe(work.reset_io.obs, request.env, 0);
    }
    for (const uint32_t env : work.steps) {
      ++counts_[env];
      Observe(work.step_io.obs, env, work.step_io.actions[env]);
      work.step_io.rewards[env] = 0;
      work.step_io.terminateds[env] = 0;
      work.step_io.truncateds[env] = 0;
    }
    const CurrentContext current(context);
    return context.cuda().MemcpyToDevice(gpu.At(gpu.spec().arrays.front()),
                                         obs_.data(), sizeof(obs_),
                                         nullptr) == kCudaSuccess;
  }

 private:
  void Observe(std::span<float> obs, uint32_t env, float action) {
    obs_[kObsSize * env] = counts_[env];
    obs_[kObsSize * env + 1] = action;
    std::copy_n(&obs_[kObsSize * env], kObsSize, &obs[kObsSize * env]);
  }

  std::array<float, kEnvs> counts_ = {};
  Observations obs_ = {};
  EngineSchema schema_ = {.task = "gpu",
                          .num_envs = kEnvs,
                          .obs_size = kObsSize,
                          .act_size = 1,
                          .gpu = GpuSchema{}};
};

std::shared_ptr<const PrimaryContext> ContextOf(int device) {
  return PrimaryContext::Of(*CudaDriver::Load().value(), device).value();
}

class GpuFaults : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    setenv("TANDEM_CUDA_LIBRARY", StandInLibrary().c_str(), 1);
    setenv("TANDEM_CUDA", "require", 1);
    setenv("TANDEM_STANDIN_INLINE", "1000000000", 1);
  }

  // The engine's process. If hold_ is set, it marks its second step, before
  // its work and after its answer.
  void Serve() {
    GpuCounter engine;
    const auto host = EngineHost::CreateTicked(&engine, {.name = name_});
    if (!host.ok()) _exit(1);
    const auto context = ContextOf((*host)->gpu()->device());
    for (int steps = 0;;) {
      const EngineWork* const work = (*host)->Next(Deadline::Infinite());
      if (work == nullptr) continue;
      const bool held = !work->steps.empty() && ++steps == 2 && hold_.Get();
      if (held) Victim::Mark();
      if (!engine.Do(*work, *(*host)->gpu(), *context)) _exit(2);
      if (!(*host)->Done(absl::OkStatus()).ok()) _exit(3);
      if (held) Victim::Mark();
    }
  }
  // Serves until the test kills it.
  std::unique_ptr<Victim> StartServing() {
    hold_.Set(false);
    auto engine = std::make_unique<Victim>([this] { Serve(); });
    engine->Release();
    return engine;
  }

  static bool GpuHas(ImportedArrays& gpu, const PrimaryContext& context,
                     float count) {
    Observations found = {};
    const CurrentContext current(context);
    const CudaFunctions& cuda = context.cuda();
    if (!gpu.WaitOn(nullptr).ok() ||
        cuda.MemcpyToHost(found.data(), gpu.At(gpu.arrays().front()),
                          sizeof(found), nullptr) != kCudaSuccess ||
        !gpu.AwaitReaders().ok()) {
      return false;
    }
    return found == Observations{count, count, count, count};
  }
  // Steps, and checks the results. Returns the first error's code; 100: wrong
  // values.
  int Steps(ClientSide& side, int steps) {
    const auto gpu = ImportedArrays::Open(side);
    if (!gpu.ok()) return static_cast<int>(CodeOf(gpu.status()));
    const auto context = ContextOf((*gpu)->device());
    for (int step = 1; step <= steps; ++step) {
      const auto count = static_cast<float>(step);
      const ErrorCode code = StepAndCheck(side, count, count);
      if (code != ErrorCode::kOk) return static_cast<int>(code);
      if (!GpuHas(**gpu, *context, count)) return 100;
    }
    return testing::Test::HasFailure() ? 100 : 0;
  }
  // A client in a process of its own, which exits with the result of Steps.
  std::unique_ptr<Victim> StartClient(int steps) {
    auto client = std::make_unique<Victim>([this, steps] {
      absl::StatusOr<ClientSide> side = ClientSide::Attach(name_, {});
      _exit(side.ok() ? Steps(*side, steps)
                      : static_cast<int>(CodeOf(side.status())));
    });
    client->Release();
    return client;
  }
  // Its exit code.
  static int CodeOfExit(Victim& client) {
    const int status = client.AwaitExit();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  SharedFlag hold_;
};

TEST_F(GpuFaults, AnEngineKilledAnywhereHasAnsweredOrIsGone) {
  int answered = 0;
  int gone = 0;
  const size_t places =
      AtEachAccess(EveryAccess::kStores, [&](const Advance& advance) {
        hold_.Set(true);
        Victim engine([this] { Serve(); });
        engine.RunOn();
        const std::unique_ptr<Victim> client = StartClient(2);
        ASSERT_TRUE(engine.AwaitMark());
        advance(engine, nullptr);
        engine.Kill();
        const int code = CodeOfExit(*client);
        answered += code == 0;
        gone += code == static_cast<int>(ErrorCode::kPeerGone);
        EXPECT_TRUE(code == 0 || code == static_cast<int>(ErrorCode::kPeerGone))
            << code;
        const std::unique_ptr<Victim> next = StartServing();
        EXPECT_EQ(CodeOfExit(*StartClient(3)), 0);
      });
  std::printf("killed the engine at %zu places; %d answered, %d gone\n", places,
              answered, gone);
  if (!EveryAccess::kSupported) return;
  EXPECT_GT(answered, 0);
  EXPECT_GT(gone, 0);
}

TEST_F(GpuFaults, AClientKilledAnywhereIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> engine = StartServing();
  const size_t places =
      AtEachAccess(EveryAccess::kStores, [&](const Advance& advance) {
        Victim client([this] {
          absl::StatusOr<ClientSide> side = ClientSide::Attach(name_, {});
          if (!side.ok()) _exit(1);
          Victim::Mark();
          if (Steps(*side, 2) != 0 || side->Close() != ErrorCode::kOk) _exit(2);
          Victim::Mark();
        });
        ASSERT_TRUE(client.RunToMark());
        advance(client, nullptr);
        client.Kill();
        EXPECT_EQ(CodeOfExit(*StartClient(3)), 0);
      });
  std::printf("killed the client at %zu places\n", places);
  if (!EveryAccess::kSupported) return;
  EXPECT_GT(places, 20U);
}

}  // namespace
}  // namespace tandem
