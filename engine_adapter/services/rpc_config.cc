#include "engine_adapter/services/rpc_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

absl::Status Unknown(absl::string_view flag, absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(flag, ": expected ", absl::StrJoin(kServiceNames, ", "),
                   "; found '", found, "'"));
}

std::optional<Service> ServiceNamed(absl::string_view name) {
  const auto* const found = std::ranges::find(kServiceNames, name);
  if (found == kServiceNames.end()) return std::nullopt;
  return static_cast<Service>(found - kServiceNames.begin());
}

}  // namespace

absl::Status ParseServices(absl::string_view text, RpcConfig* config) {
  std::array<bool, kServices> enabled = {};
  if (text == "all") {
    enabled.fill(true);
  } else if (text != "none") {
    for (const absl::string_view name : absl::StrSplit(text, ',')) {
      const std::optional<Service> service = ServiceNamed(name);
      if (!service) return Unknown("services", name);
      enabled[static_cast<size_t>(*service)] = true;
    }
  }
  for (size_t i = 0; i < kServices; ++i) {
    config->services[i].enabled = enabled[i];
  }
  return absl::OkStatus();
}

absl::Status ParseStreamRates(absl::string_view text, RpcConfig* config) {
  RpcConfig changed = *config;
  for (const absl::string_view part :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::optional<Service> service = ServiceNamed(pair.first);
    if (!service) return Unknown("stream_hz", pair.first);
    double hz = 0;
    if (!absl::SimpleAtod(pair.second, &hz) ||
        !(hz >= kLeastStreamHz && hz <= RpcConfig::kMaxStreamHz)) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("stream_hz: expected ", pair.first, "= a rate from ",
                       kLeastStreamHz, " to ", RpcConfig::kMaxStreamHz,
                       "; found '", part, "'"));
    }
    changed[*service].stream_hz = hz;
  }
  *config = changed;
  return absl::OkStatus();
}

}  // namespace tandem
