// The samples that the messages' goldens hold: one envelope for each payload of
// version 1, and the two that have none. Together they set every field.
//
// Data flow: samples -> :generate -> rpc_v1/*.bin; rpc_goldens_test compares
// them again, with today's generated code.
//
//   for (const RpcSample& sample : RpcSamples()) {
//     Write(sample.name + ".bin", RpcBytes(sample.envelope));
//   }

#ifndef TANDEM_SCHEMA_GOLDENS_TESTING_RPC_SAMPLES_H_
#define TANDEM_SCHEMA_GOLDENS_TESTING_RPC_SAMPLES_H_

#include <string>
#include <vector>

#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

struct RpcSample {
  std::string name;  // the payload's, such as "ImageFrame"; or of what it is
  rpc::EnvelopeT envelope;
};

// No field of a message is zero or empty in all of them, and no two numbers of
// one message are equal.
std::vector<RpcSample> RpcSamples();

// As it goes over a ring.
std::string RpcBytes(const rpc::EnvelopeT& envelope);

}  // namespace tandem

#endif  // TANDEM_SCHEMA_GOLDENS_TESTING_RPC_SAMPLES_H_
