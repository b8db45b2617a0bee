#include "schema/goldens/testing/rpc_listing.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "flatbuffers/idl.h"
#include "schema/goldens/testing/rpc_samples.h"

namespace tandem {

absl::StatusOr<std::string> RpcListing(absl::string_view schema) {
  flatbuffers::IDLOptions options;
  options.strict_json = true;
  flatbuffers::Parser parser(options);
  if (!parser.Parse(std::string(schema).c_str())) {
    return absl::InvalidArgumentError(parser.error_);
  }
  std::string listing;
  for (const RpcSample& sample : RpcSamples()) {
    std::string json;
    if (!GenerateText(parser, RpcBytes(sample.envelope).data(), &json)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the schema does not fit the sample ", sample.name));
    }
    absl::StrAppend(&listing, listing.empty() ? "{\n" : ",\n", "\"",
                    sample.name, "\": ", absl::StripSuffix(json, "\n"));
  }
  return listing + "\n}\n";
}

}  // namespace tandem
