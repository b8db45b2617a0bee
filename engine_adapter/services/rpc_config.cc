#include "engine_adapter/rpc_config.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/quoted.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "nlohmann/json.hpp"
#include "schema/layout/image_slot.h"
#include "schema/layout/ring_header.h"

namespace tandem::rpc {

// absl's flags find these by argument-dependent lookup.
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
          "most items per second of a service's streams (default 60), such as "
          "camera=10,telemetry=200");
ABSL_FLAG(uint32_t, rpc_ring_kib, tandem::kDefaultRingBytes / 1024,
          "KiB of each of the two RPC rings: a power of two from 4 to 1048576; "
          "a message larger than half of it goes in pieces");
ABSL_FLAG(uint32_t, image_slot_bytes, 0,
          "integer, 0 to 1073741824: bytes of each of ten slots in the region, "
          "two for the client and two for each attendant, reserved at the "
          "start: an image that its caller has requested is read there in "
          "place; a larger one comes through the RPC ring; 0: no slots");
ABSL_FLAG(
    tandem::rpc::SimulationMode, mode, tandem::rpc::SimulationMode::FAST,
    "how simulated time goes: fast or deterministic (a step for each "
    "exchange), or realtime (by the wall clock, whether or not actions come)");

namespace tandem {
namespace {

// The services with streams; rpc_host_test compares them with the methods.
constexpr std::array kStreaming = {Service::kMujoco, Service::kTelemetry,
                                   Service::kCamera, Service::kViewport};

absl::Status RefuseRate(absl::string_view field, absl::string_view found) {
  const std::string names = absl::StrJoin(
      kStreaming, ", ",
      [](std::string* out, Service service) { out->append(NameOf(service)); });
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(
          field, ": expected services that have streams (", names,
          "), each with a rate from ", kLeastStreamHz, " to ",
          RpcConfig::kMaxStreamHz,
          ", such as camera=10,telemetry=200 or {\"camera\": 10}; found ",
          Quoted(found)));
}

using Rate = std::pair<std::string, std::string>;  // service, moments a second

std::vector<Rate> RatesOfText(absl::string_view text) {
  std::vector<Rate> rates;
  for (const absl::string_view part :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    rates.push_back(absl::StrSplit(part, absl::MaxSplits('=', 1)));
  }
  return rates;
}

absl::StatusOr<std::vector<Rate>> RatesOfJson(absl::string_view field,
                                              absl::string_view text) {
  const auto object = nlohmann::ordered_json::parse(
      text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return RefuseRate(field, text);
  std::vector<Rate> rates;
  for (const auto& [name, value] : object.items()) {
    rates.emplace_back(name, value.dump());
  }
  return rates;
}

}  // namespace

absl::Status ParseServices(absl::string_view text, RpcConfig* config) {
  std::array<bool, kServices> enabled = {};
  if (text == "all") {
    enabled.fill(true);
  } else if (text != "none") {
    for (const absl::string_view name : absl::StrSplit(text, ',')) {
      const std::optional<Service> service = ServiceNamed(name);
      if (!service) {
        return MakeError(
            ErrorCode::kInvalidArgument,
            absl::StrCat("--services: expected all, none, or some of ",
                         absl::StrJoin(kServiceNames, ", "), "; found ",
                         Quoted(name)));
      }
      enabled[static_cast<size_t>(*service)] = true;
    }
  }
  for (size_t i = 0; i < kServices; ++i) {
    config->services[i].enabled = enabled[i];
  }
  return absl::OkStatus();
}

absl::Status ParseStreamRates(absl::string_view text, RpcConfig* config,
                              absl::string_view field) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Rate> rates,
                          absl::StartsWith(text, "{") ? RatesOfJson(field, text)
                                                      : RatesOfText(text));
  RpcConfig changed = *config;
  for (const auto& [name, rate] : rates) {
    const std::optional<Service> service = ServiceNamed(name);
    double hz = 0;
    if (!service ||
        std::ranges::find(kStreaming, *service) == kStreaming.end() ||
        !absl::SimpleAtod(rate, &hz) ||
        !(hz >= kLeastStreamHz && hz <= RpcConfig::kMaxStreamHz)) {
      return RefuseRate(field, absl::StrCat(name, "=", rate));
    }
    changed[*service].stream_hz = hz;
  }
  *config = changed;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> RpcRingBytes(uint32_t kib, absl::string_view field) {
  constexpr uint32_t kMostKib = kMaxRingBytes / 1024;
  constexpr uint32_t kLeastKib = 4;
  if (kib < kLeastKib || kib > kMostKib || !std::has_single_bit(kib)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat(field, ": expected a power of two from ", kLeastKib,
                     " to ", kMostKib, ", found ", kib));
  }
  return kib * 1024;
}

absl::StatusOr<RpcFlags> RpcFromFlags() {
  RpcFlags flags = {.mode = absl::GetFlag(FLAGS_mode)};
  TANDEM_ASSIGN_OR_RETURN(
      flags.ring_bytes,
      RpcRingBytes(absl::GetFlag(FLAGS_rpc_ring_kib), "--rpc_ring_kib"));
  flags.image_slot_bytes = absl::GetFlag(FLAGS_image_slot_bytes);
  if (flags.image_slot_bytes > kMaxImageSlotBytes) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("--image_slot_bytes: expected at most ",
                     kMaxImageSlotBytes, ", found ", flags.image_slot_bytes));
  }
  TANDEM_RETURN_IF_ERROR(
      ParseServices(absl::GetFlag(FLAGS_services), &flags.config));
  TANDEM_RETURN_IF_ERROR(
      ParseStreamRates(absl::GetFlag(FLAGS_stream_hz), &flags.config));
  return flags;
}

}  // namespace tandem
