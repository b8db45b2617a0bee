// RandomizationPort: how an engine takes on a SimulationContract.
//
// Data flow: ResetAgent -> SetContract -> each environment's next reset draws.
// Ownership: the engine's; the thread that steps calls, between exchanges.
//
//   port->SetContract(envs, &contract, seed);  // holds from each one's reset
//   on port->SetContract(envs, nullptr, {});      // from then as the task has
//   it

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_RANDOMIZATION_PORT_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_RANDOMIZATION_PORT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct SimulationContractT;
}  // namespace tandem::rpc

namespace tandem {

class RandomizationPort {
 public:
  virtual ~RandomizationPort() = default;

  // Each of these environments takes on the contract: from its next reset on,
  // each of its resets draws anew within it. nullptr: from its next reset on,
  // everything is as the task itself has it. Environment i draws from a stream
  // of its own that starts from *seed + i; without a seed the engine chooses.
  // Returns the names of the fields that were given and that the task has no
  // use for, as in the schema. kInvalidArgument for a range that cannot be:
  // names the field; no environment has changed then.
  virtual absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_RANDOMIZATION_PORT_H_
