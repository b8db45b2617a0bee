// BlockedSignals: threads made during its lifetime run no signal handler.
//
// Data flow: none. So handlers run in the thread that serves clients, which
// they must wake.
//
//   {
//     const BlockedSignals blocked;
//     worker = std::thread(...);
//   }

#pragma once

#include <cstddef>

namespace tandem {

// Blocks every signal in the calling thread; its new threads inherit the mask.
// The destructor restores the thread's mask. Signals stay pending until then.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  [[maybe_unused]] alignas(8) std::byte before_[128];  // the thread's mask
};

}  // namespace tandem
