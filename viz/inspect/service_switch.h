// SwitchServices: switches services of a running engine.
//
// Data flow: names -> AttendantSide -> SetService -> the engine.
//
//   absl::Status status = SwitchServices("demo", {"camera"}, {"debug"});

#ifndef TANDEM_VIZ_INSPECT_SERVICE_SWITCH_H_
#define TANDEM_VIZ_INSPECT_SERVICE_SWITCH_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Attaches as an attendant, switches, and leaves. Blocks, at most about 10 s
// for the attach and each service. Errors: those of AttendantSide::Attach and
// RpcClient::Call. Services before the failed one stay switched.
absl::Status SwitchServices(absl::string_view region,
                            std::span<const std::string> enable,
                            std::span<const std::string> disable);

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_SERVICE_SWITCH_H_
