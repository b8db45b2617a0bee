// BlockedSignals: threads made while it lives never run a signal handler.
//
// Data flow: none. Handlers then run in the thread that serves clients, which
// is the one that they are meant to wake.
//
//   {
//     const BlockedSignals blocked;
//     worker = std::thread(...);
//   }

#ifndef TANDEM_TRANSPORT_BASE_BLOCKED_SIGNALS_H_
#define TANDEM_TRANSPORT_BASE_BLOCKED_SIGNALS_H_

#include <signal.h>

namespace tandem {

// Blocks every signal in the calling thread, whose new threads inherit that;
// the destructor restores the thread's mask. Signals wait meanwhile.
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

#endif  // TANDEM_TRANSPORT_BASE_BLOCKED_SIGNALS_H_
