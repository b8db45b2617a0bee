// BlockedSignals: threads made during its lifetime run no signal handler.
//
// Data flow: none. So handlers run in the thread that serves clients, which
// they must wake.
//
//   {
//     const BlockedSignals blocked;
//     worker = std::thread(...);
//   }

#ifndef TANDEM_BASE_OS_BLOCKED_SIGNALS_H_
#define TANDEM_BASE_OS_BLOCKED_SIGNALS_H_

#include <signal.h>

namespace tandem {

// Blocks every signal in the calling thread; its new threads inherit the mask.
// The destructor restores the thread's mask. Signals stay pending until then.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tandem

#endif  // TANDEM_BASE_OS_BLOCKED_SIGNALS_H_
