// Callers: the callers of an engine's RPCs: the client and attendants, which
// attach and leave.
//
// Data flow: events of a region's owner -> Callers -> RpcHost <-> the RPC
// rings. Ownership: EngineHost or SupervisorHost owns it; its thread calls it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc_config.h"
#include "schema/layout/service.h"
#include "transport/ring/ring.h"
#include "transport/session/owner_side.h"

namespace tandem {

class LiveScene;
class RpcHost;

// Not thread-safe, except for EnableLater. No method blocks.
class Callers {
 public:
  using LogLine = std::function<void(absl::string_view line)>;

  // All pointers must outlive this object; `scene` may be nullptr: none. `log`
  // gets a line for each attendant that attaches or leaves, and for invalid
  // rings.
  Callers(const RpcConfig& config, EngineBase* engine,
          SimulationPort* simulation, OwnerSide* side, LiveScene* scene,
          LogLine log);
  ~Callers();
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  // The client is admitted: call it after AcknowledgeAttach.
  void ClientArrived();
  // The client has left, or another one attaches.
  void ClientLeft();

  // Answers calls, and continues what waits for room or for time.
  void Serve();
  // The same, after attendants have attached or left.
  void ServeAttendants();
  // The same beside an exchange: Next of the side will not return kRpcs and
  // kAttendants for what this call handles.
  void ServeBesideExchange();

  // Whether Serve has no work unless a message arrives.
  bool IsQuiet() const;
  // The time of Serve's next work if no message arrives; nullopt: never. Reads
  // a clock unless IsQuiet.
  std::optional<int64_t> DueNs() const;

  // As RpcHost's.
  absl::Status EnableLater(Service service, bool enabled);

  void LogPause(bool begun, size_t caller) const;

 private:
  void Begin(size_t caller, absl::StatusOr<RingReader> reader,
             absl::StatusOr<RingWriter> writer);
  std::string TextOf(size_t caller) const;
  void LogBrokenRings(size_t caller) const;

  OwnerSide* const side_;
  const LogLine log_;
  std::unique_ptr<RpcHost> rpcs_;
};

}  // namespace tandem
