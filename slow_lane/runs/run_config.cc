#include "slow_lane/runs/run_config.h"

#include <sha2.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "slow_lane/runs/config_members.h"

namespace tandem::slow_lane {
namespace {

using nlohmann::json;

// The maximum nesting of objects and arrays. Code that writes or copies JSON is
// recursive.
constexpr int kDeepest = 64;

bool IsDeeperThan(const json& value, int levels) {
  if (value.is_primitive()) return false;
  if (levels == 0) return true;
  for (const json& each : value) {
    if (IsDeeperThan(each, levels - 1)) return true;
  }
  return false;
}

std::string Sha256(absl::string_view text) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digits = {};
  SHA256Data(reinterpret_cast<const uint8_t*>(text.data()), text.size(),
             digits.data());
  return digits.data();
}

// Adds all defaults.
void FillIn(json& config) {
  config["resources"]["gpus"].emplace("mandatory", false);
  json& artifacts = config["artifacts"];
  artifacts.emplace("persist_logs", true);
  artifacts.emplace("keep_checkpoints", true);
  if (artifacts.contains("output_prefix") &&
      artifacts["output_prefix"].is_null()) {
    artifacts.erase("output_prefix");
  }
  config.emplace("metadata", json::object());
  config.emplace("schedule", json::object());
}

// Returns the worker's variables of metadata.tandem.fast_lane, by which it
// chooses what to publish (client_py/tandem/engine/worker_environment.py).
std::map<std::string, std::string> FastLaneVariables(json& root) {
  constexpr absl::string_view kFastLane = "metadata.tandem.fast_lane";
  json* const found = FindMember(root, kFastLane);
  if (found == nullptr) return {};
  const json& given = *found;
  std::map<std::string, std::string> variables = {
      {"MOSAIC_FASTLANE_ONLY", given.value("only", false) ? "1" : "0"}};
  if (const auto slot = IntegerAt(root, absl::StrCat(kFastLane, ".slot"))) {
    variables["MOSAIC_FASTLANE_SLOT"] = absl::StrCat(*slot);
  }
  if (given.contains("video_mode")) {
    variables["MOSAIC_FASTLANE_VIDEO_MODE"] = given["video_mode"];
  }
  if (const auto limit =
          IntegerAt(root, absl::StrCat(kFastLane, ".grid_limit"))) {
    variables["MOSAIC_FASTLANE_GRID_LIMIT"] = absl::StrCat(*limit);
  }
  return variables;
}

void ReadRestart(json& root, RunConfig* config) {
  json* const restart = FindMember(root, kRestart);
  if (restart == nullptr) return;
  config->restart_max = *IntegerAt(*restart, "max");
  config->restart_on = {std::begin(kRestartCauses), std::end(kRestartCauses)};
  if (restart->contains("on")) {
    config->restart_on = (*restart)["on"].get<std::set<std::string>>();
  }
}

std::map<std::string, std::string> ParametersOf(json& root) {
  std::map<std::string, std::string> parameters;
  const json* const given = FindMember(root, kParameters);
  if (given == nullptr) return parameters;
  for (const auto& [name, value] : given->items()) {
    parameters[name] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }
  return parameters;
}

absl::StatusOr<json> ParseObject(absl::string_view text) {
  json given;
  try {
    given = json::parse(text.begin(), text.end());
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("run config: expected JSON, found ", Quoted(text), ": ",
                     Quoted(error.what())));
  }
  if (!given.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run config: expected a JSON object, found ", Shown(given)));
  }
  if (IsDeeperThan(given, kDeepest)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run config: expected objects and arrays within one another at most ",
        kDeepest, " deep, found more"));
  }
  return given;
}

absl::Status CheckSize(absl::string_view text) {
  if (text.size() <= kMaxConfigBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "run config: expected at most ", kMaxConfigBytes, " bytes, found ",
      text.size(), "; put what is large into a file, and name that"));
}

}  // namespace

absl::StatusOr<RunConfig> ParseSubmittedConfig(absl::string_view text) {
  TANDEM_RETURN_IF_ERROR(CheckSize(text));
  TANDEM_ASSIGN_OR_RETURN(RunConfig config, ParseRunConfig(text));
  // The canonical text is longer: it has defaults, and numbers such as 1e15 are
  // written out.
  TANDEM_RETURN_IF_ERROR(CheckSize(config.canonical_json));
  return config;
}

absl::StatusOr<RunConfig> ParseRunConfig(absl::string_view text) {
  TANDEM_ASSIGN_OR_RETURN(json root, ParseObject(text));
  TANDEM_RETURN_IF_ERROR(CheckMembers(root));
  FillIn(root);

  RunConfig config;
  config.run_name = root["run_name"];
  config.entry_point = root["entry_point"];
  config.arguments = root["arguments"].get<std::vector<std::string>>();
  config.environment =
      root["environment"].get<std::map<std::string, std::string>>();
  config.cpus = root["resources"]["cpus"];
  config.memory_mb = root["resources"]["memory_mb"];
  config.enforce_resources = FlagAt(root, "metadata.tandem.enforce_resources");
  config.reserve_memory = FlagAt(root, "metadata.tandem.reserve_memory");
  if (const json* const priority =
          FindMember(root, "metadata.tandem.priority")) {
    config.priority = priority->get<int32_t>();
  }
  config.parameters = ParametersOf(root);
  config.sweep = TextAt(root, "metadata.tandem.sweep").value_or("");
  ReadRestart(root, &config);
  config.gpus_requested = root["resources"]["gpus"]["requested"];
  config.gpus_mandatory = root["resources"]["gpus"]["mandatory"];
  config.persist_logs = root["artifacts"]["persist_logs"];
  config.keep_checkpoints = root["artifacts"]["keep_checkpoints"];
  config.output_prefix = TextAt(root, "artifacts.output_prefix");
  config.max_duration_secs = IntegerAt(root, "schedule.max_duration_seconds");
  config.max_steps = IntegerAt(root, "schedule.max_steps");
  config.working_directory = TextAt(root, "metadata.tandem.working_directory");
  config.step_stride =
      IntegerAt(root, "metadata.tandem.step_stride").value_or(1);
  config.fault_after_secs = IntegerAt(root, "metadata.tandem.fault_after");
  config.fast_lane = FastLaneVariables(root);
  config.worker_id = TextAt(root, "metadata.worker.worker_id");
  config.on_ray = FindMember(root, kRay) != nullptr;
  config.canonical_json = root.dump();
  config.digest = Sha256(config.canonical_json);
  return config;
}

}  // namespace tandem::slow_lane
