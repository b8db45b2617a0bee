// What the messages' goldens say, for people and for readers in any language.
//
// Data flow: samples -> their bytes -> read by a schema alone, without
// generated code -> JSON; :generate writes it to rpc_v1/listing.json.
//
//   absl::StatusOr<std::string> json = RpcListing(text_of_hazel_rpc_fbs);

#ifndef TANDEM_SCHEMA_GOLDENS_TESTING_RPC_LISTING_H_
#define TANDEM_SCHEMA_GOLDENS_TESTING_RPC_LISTING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// All of RpcSamples(), in their order: name -> envelope. What has its default
// is left out. InvalidArgument: the schema cannot be read, or does not fit.
absl::StatusOr<std::string> RpcListing(absl::string_view schema);

}  // namespace tandem

#endif  // TANDEM_SCHEMA_GOLDENS_TESTING_RPC_LISTING_H_
