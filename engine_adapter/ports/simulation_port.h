// SimulationPort: the loop around an engine, as the services steer it.
//
// Data flow: services agent and scene -> SimulationPort -> EngineHost's loop.
// Ownership: the host's; the thread that steps calls, between exchanges.
//
//   absl::Status status = simulation->SetPaused(true);

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_SIMULATION_PORT_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_SIMULATION_PORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
enum class SimulationMode : uint8_t;
}  // namespace tandem::rpc

namespace tandem {

class SimulationPort {
 public:
  virtual ~SimulationPort() = default;

  virtual rpc::SimulationMode mode() const = 0;
  // kUnsupported: the engine does not say how long its steps are.
  virtual absl::Status SetMode(rpc::SimulationMode mode) = 0;

  virtual bool paused() const = 0;
  // Ends a SingleStep that is under way, whether it pauses, pauses again or
  // resumes.
  virtual void SetPaused(bool paused) = 0;

  // Steps a paused engine so many times, beside answering commands; `done` is
  // called with how many were done, fewer if SetPaused ends it. Errors:
  // kInvalidArgument if it is not paused, or does some already.
  virtual absl::Status SingleStep(
      uint32_t steps, std::function<void(absl::StatusOr<uint32_t>)> done) = 0;

  // Starts a new episode in each of these environments now, environment i with
  // seed *seed + i if one is given. The client sees it by its next exchange.
  virtual absl::Status Reset(std::span<const uint32_t> envs,
                             std::optional<uint64_t> seed) = 0;

  // Exchanges answered, as the region counts them.
  virtual uint64_t frame_seq() const = 0;
  // Steps, those of exchanges and those without one.
  virtual uint64_t steps() const = 0;

  // Grows whenever anything may have changed that can be read or seen of the
  // environments: with each exchange, step and reset, and each NoteChange.
  virtual uint64_t changes() const = 0;
  // For a service whose command has changed some of it.
  virtual void NoteChange() = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_SIMULATION_PORT_H_
