// GatewayProcess: tandem-gateway beside an engine's server (--grpc).
//
// Data flow: the server's flag -> Start -> the gateway, which attaches to the
// region as any other program does.
// Ownership: the server's main thread. The gateway also ends when this process
// ends for any reason.

#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/os/process_handle.h"

namespace tandem {

// Move-only. The destructor ends the gateway, as ProcessHandle's does.
class GatewayProcess {
 public:
  // Starts the program, and blocks until it listens; `region` may be created
  // later. Its error texts go to this process's stderr. Errors:
  //  - kInvalidArgument: it refuses `listen`.
  //  - kUnsupported: there is no such program.
  //  - kEngineFailed: it ended.
  static absl::StatusOr<GatewayProcess> Start(const std::string& listen,
                                              const std::string& region);

  // The line that it has printed: its address.
  const std::string& text() const { return text_; }

 private:
  GatewayProcess(ProcessHandle process, std::string text)
      : process_(std::move(process)), text_(std::move(text)) {}

  ProcessHandle process_;
  std::string text_;
};

}  // namespace tandem
