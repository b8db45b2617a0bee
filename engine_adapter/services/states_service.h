// StatesService: saves the states of environments, and puts them in place.
//
// Data flow: request -> StatePort, StateRows -> response.
// Ownership: the host owns it; the stepping thread calls it between exchanges.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine_adapter/core/state_rows.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Both methods allocate; neither blocks. kInvalidArgument for an environment
// that does not exist.
class StatesService {
 public:
  // All must outlive this object; `simulation` has rows.
  StatesService(const EngineSchema& schema, StatePort* port,
                SimulationPort* simulation)
      : schema_(schema),
        port_(port),
        rows_(simulation->state_rows()),
        simulation_(simulation) {}

  // Errors: StatePort::Save's; kMessageTooLarge if the states of these
  // environments are too large for an answer.
  absl::StatusOr<rpc::SaveStatesResponseT> SaveStates(
      const rpc::SaveStatesRequestT& request);

  // Stages states: the next reset of each environment puts its state in place.
  // kLayoutMismatch: an engine with another fingerprint has saved them.
  // kInvalidArgument: one is invalid, or there is not one for each environment.
  // After an error none of these environments has a staged state.
  absl::StatusOr<rpc::LoadStatesResponseT> LoadStates(
      const rpc::LoadStatesRequestT& request);

 private:
  std::string Fingerprint() const;

  const EngineSchema& schema_;
  StatePort* port_;
  StateRows* rows_;
  SimulationPort* simulation_;
};

}  // namespace tandem
