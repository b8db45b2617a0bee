#include "base/os/fork_guard.h"

namespace tandem {
namespace fork_guard_internal {
std::atomic<uint32_t> fork_count{0};  // no process forks
}

void AfterForkInChild(void (*)()) {}

}  // namespace tandem
