#include "engine_adapter/services/rpc_flags.h"

#include <bit>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/service.h"
#include "transport/base/error.h"

namespace tandem::rpc {

// Found by absl's flags, by argument-dependent lookup.
bool AbslParseFlag(absl::string_view text, SimulationMode* mode, std::string*) {
  for (const SimulationMode known : EnumValuesSimulationMode()) {
    if (text != absl::AsciiStrToLower(EnumNameSimulationMode(known))) continue;
    *mode = known;
    return true;
  }
  return false;
}

std::string AbslUnparseFlag(SimulationMode mode) {
  return absl::AsciiStrToLower(EnumNameSimulationMode(mode));
}

}  // namespace tandem::rpc

ABSL_FLAG(
    std::string, services, "all",
    absl::StrCat("which services clients may call: all, none, or some of ",
                 absl::StrJoin(tandem::kServiceNames, ", "), ", with commas"));
ABSL_FLAG(std::string, stream_hz, "",
          "most items a second of a service's streams, 60 unless told, such as "
          "camera=10,telemetry=200");
ABSL_FLAG(uint32_t, command_ring_kib, tandem::kDefaultRingBytes / 1024,
          "KiB of each of the two command rings: a power of two from 4 to "
          "1048576; a message larger than half of it goes in pieces");
ABSL_FLAG(tandem::rpc::SimulationMode, mode, tandem::rpc::SimulationMode::FAST,
          "how simulated time goes: fast or deterministic (a step for each "
          "exchange), or realtime (by the wall clock, whether or not actions "
          "come)");

namespace tandem {

absl::StatusOr<RpcFlags> RpcFromFlags() {
  constexpr uint32_t kMostKib = kMaxRingBytes / 1024;
  constexpr uint32_t kLeastKib = 4;
  RpcFlags flags = {.mode = absl::GetFlag(FLAGS_mode)};
  const uint32_t kib = absl::GetFlag(FLAGS_command_ring_kib);
  if (kib < kLeastKib || kib > kMostKib || !std::has_single_bit(kib)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("--command_ring_kib: expected a power of two "
                     "from ",
                     kLeastKib, " to ", kMostKib, ", found ", kib));
  }
  flags.ring_bytes = kib * 1024;
  absl::Status status =
      ParseServices(absl::GetFlag(FLAGS_services), &flags.config);
  status.Update(
      ParseStreamRates(absl::GetFlag(FLAGS_stream_hz), &flags.config));
  if (!status.ok()) return status;
  return flags;
}

}  // namespace tandem
