#include "base/os/side_locks.h"

#include <utility>

#include "base/os/fork_guard.h"

namespace tandem {

SideLocks::SideLocks(intptr_t access)
    : access_(access), born_in_(ForkCount()) {}

SideLocks::SideLocks(SideLocks&& other) noexcept
    : access_(std::exchange(other.access_, kNone)), born_in_(other.born_in_) {}

SideLocks& SideLocks::operator=(SideLocks&& other) noexcept {
  if (this != &other) {
    Release();
    access_ = std::exchange(other.access_, kNone);
    born_in_ = other.born_in_;
  }
  return *this;
}

bool SideLocks::IsOurs() const {
  return access_ != kNone && born_in_ == ForkCount();
}

}  // namespace tandem
