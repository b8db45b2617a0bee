// The content of the messages' goldens as JSON, for readers in any language.
//
// Data flow: samples -> bytes -> read with the schema only, without generated
// code -> JSON; :generate writes it to rpc_v1/listing.json.
//
//   absl::StatusOr<std::string> json = RpcListing(text_of_hazel_rpc_fbs);

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Lists all of RpcSamples(), in order: name -> envelope. Fields with default
// values are omitted. InvalidArgument: the schema is invalid or does not fit.
absl::StatusOr<std::string> RpcListing(absl::string_view schema);

}  // namespace tandem
