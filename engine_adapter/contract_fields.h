// ContractFields: a contract's given fields, by name, for engines that do not
// read the message.
//
// Data flow: rpc::SimulationContractT -> names and values -> the engine.
//
//   TANDEM_ASSIGN_OR_RETURN(auto fields, ContractFields(*contract));
//   fields[0];  // {"friction_range", {0.5, 1.25}, ""}

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

struct ContractField {
  const char* name;           // of the schema; static
  std::vector<float> values;  // of a number: one
  std::string text;           // of a text; else empty
};

// Returns the fields that are neither empty nor 0, in the schema's order.
// kInvalidArgument, by the field's name: a range that is not two numbers, the
// lower one first; a negative noise or probability; or a number that is not
// finite.
absl::StatusOr<std::vector<ContractField>> ContractFields(
    const rpc::SimulationContractT& contract);

}  // namespace tandem
