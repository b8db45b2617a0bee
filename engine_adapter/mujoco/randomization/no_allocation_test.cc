// A contract costs no allocation in steps and resets: malloc itself is counted,
// MuJoCo's calls included.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine_adapter/mujoco/environment/randomization_rig.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  ++allocations;
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}

namespace tandem {
namespace {

TEST(Randomization, StepsAndResetsAllocateNothing) {
  RandomizationRig rig = RandomizationRig::Of("commanded rover", 2);
  const rpc::SimulationContractT contract = WholeContract();
  ASSERT_TRUE(rig.Take(&contract, 3).value().empty());
  int64_t before = allocations;
  for (int episode = 0; episode < 3; ++episode) {
    rig.Reset(1);
    for (int step = 0; step < 100; ++step) rig.Step(0, 0.5F);
  }
  EXPECT_EQ(allocations, before);
  ASSERT_TRUE(rig.Take(nullptr, {}).ok());
  EXPECT_GT(allocations, before);  // what is taken on is allocated: it counts
  before = allocations;
  rig.Reset(1);
  rig.Step(0);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace tandem
