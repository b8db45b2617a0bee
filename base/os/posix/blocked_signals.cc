#include "base/os/blocked_signals.h"

#include <signal.h>

#include <new>

namespace tandem {

BlockedSignals::BlockedSignals() {
  static_assert(sizeof(sigset_t) <= sizeof(before_));
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, new (before_) sigset_t);
}

BlockedSignals::~BlockedSignals() {
  pthread_sigmask(SIG_SETMASK,
                  std::launder(reinterpret_cast<sigset_t*>(before_)), nullptr);
}

}  // namespace tandem
