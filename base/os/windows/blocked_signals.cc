#include "base/os/blocked_signals.h"

namespace tandem {

// A console's events run in a thread that the system makes for each.
BlockedSignals::BlockedSignals() = default;
BlockedSignals::~BlockedSignals() = default;

}  // namespace tandem
