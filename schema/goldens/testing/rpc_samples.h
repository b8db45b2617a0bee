// The samples of the messages' goldens: one envelope for each payload of
// version 1, and two without a payload. Together they set every field.
//
// Data flow: samples -> :generate -> rpc_v1/*.bin; rpc_goldens_test compares
// them with the current generated code.
//
//   for (const RpcSample& sample : RpcSamples()) {
//     Write(sample.name + ".bin", RpcBytes(sample.envelope));
//   }

#pragma once

#include <string>
#include <vector>

#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

struct RpcSample {
  std::string name;  // the payload's name, such as "ImageFrame"; or the kind's
  rpc::EnvelopeT envelope;
};

// Each field of a message is set in at least one sample, and the numbers of a
// message are all different.
std::vector<RpcSample> RpcSamples();

// The bytes of the envelope's entry in an RPC ring.
std::string RpcBytes(const rpc::EnvelopeT& envelope);

}  // namespace tandem
