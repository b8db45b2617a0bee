// A contract causes no allocation in steps and resets. The test counts malloc
// itself, MuJoCo's calls included.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "engine_adapter/mujoco/environment/testing/randomization_rig.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/testing/allocation_counter.h"

namespace tandem {
namespace {

std::atomic<uint64_t> allocations = 0;

TEST(Randomization, StepsAndResetsAllocateNothing) {
  RandomizationRig rig = RandomizationRig::Of("commanded rover", 2);
  const rpc::SimulationContractT contract = WholeContract();
  ASSERT_TRUE(rig.Take(&contract, 3).value().empty());
  allocation_count = &allocations;
  uint64_t before = allocations;
  for (int episode = 0; episode < 3; ++episode) {
    rig.Reset(1);
    for (int step = 0; step < 100; ++step) rig.Step(0, 0.5F);
  }
  EXPECT_EQ(allocations, before);
  ASSERT_TRUE(rig.Take(nullptr, {}).ok());
  EXPECT_GT(allocations, before);  // a new contract allocates: counting works
  before = allocations;
  rig.Reset(1);
  rig.Step(0);
  EXPECT_EQ(allocations, before);
  allocation_count = nullptr;
}

}  // namespace
}  // namespace tandem
