// GatewayProcess: tandem-gateway beside an engine's server (--grpc).
//
// Data flow: the server's flag -> Start -> the gateway, which attaches to the
// region as any other program does.
// Ownership: the server's main thread. The gateway also ends when this process
// ends for any reason.
//
//   absl::StatusOr<GatewayProcess> gateway =
//       GatewayProcess::Start("127.0.0.1:50051", "demo");

#ifndef TANDEM_ENGINE_ADAPTER_HOST_GATEWAY_PROCESS_H_
#define TANDEM_ENGINE_ADAPTER_HOST_GATEWAY_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tandem {

// Move-only. The destructor ends the gateway and waits for it, at most
// kStopSecs until a SIGKILL.
class GatewayProcess {
 public:
  static constexpr double kStopSecs = 5;

  // Starts the program, and blocks until it listens; `region` may be created
  // later. Its error texts go to this process's stderr. Errors:
  //  - kInvalidArgument: it refuses `listen`.
  //  - kEngineFailed: the program is missing, or ended.
  static absl::StatusOr<GatewayProcess> Start(const std::string& listen,
                                              const std::string& region);
  GatewayProcess(GatewayProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), text_(std::move(other.text_)) {}
  GatewayProcess& operator=(GatewayProcess&&) = delete;
  ~GatewayProcess();

  pid_t pid() const { return pid_; }
  // The line that it has printed: its address.
  const std::string& text() const { return text_; }

 private:
  GatewayProcess(pid_t pid, std::string text)
      : pid_(pid), text_(std::move(text)) {}

  pid_t pid_;  // -1: moved from
  std::string text_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_GATEWAY_PROCESS_H_
