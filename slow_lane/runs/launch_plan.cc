#include "slow_lane/runs/launch_plan.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "slow_lane/runs/run_token.h"

namespace tandem::slow_lane {
namespace {

std::map<std::string, std::string> OwnVariables() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  // A daemon that is itself part of a run has that run's variables.
  environment.erase("TANDEM_RESUME");
  environment.erase(kRunTokenVariable);
  environment.erase(kRemoteTokenVariable);
  return environment;
}

std::vector<std::string> Entries(
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

}  // namespace

std::vector<std::string> OwnEnvironment() { return Entries(OwnVariables()); }

LaunchPlan MakeLaunchPlan(const RunConfig& config, const RunFolder& folder,
                          const LaunchPlace& place) {
  LaunchPlan plan;
  plan.argv = config.arguments;
  plan.argv.insert(plan.argv.begin(), config.entry_point);
  std::map<std::string, std::string> environment = OwnVariables();
  // Keeps a killed worker's last lines.
  environment["PYTHONUNBUFFERED"] = std::string("1");
  for (const auto& [name, value] : config.fast_lane) {
    environment[name] = value;
  }
  for (const auto& [name, value] : config.environment) {
    environment[name] = value;
  }
  environment["TANDEM_RUN_ID"] = place.run_id;
  environment["TANDEM_RUN_DIR"] = folder.path();
  environment["TANDEM_DAEMON"] = place.daemon;
  environment["TRAINER_WORKER_CONFIG_PATH"] = folder.config_path();
  if (config.output_prefix.has_value()) {
    environment["TANDEM_OUTPUT_PREFIX"] = *config.output_prefix;
  }
  environment["TANDEM_KEEP_CHECKPOINTS"] =
      absl::StrCat(config.keep_checkpoints ? 1 : 0);
  environment["TANDEM_CHECKPOINT_DIR"] = folder.checkpoints_path();
  environment["TANDEM_ATTEMPT"] = absl::StrCat(place.attempt);
  if (place.attempt > 1) environment["TANDEM_RESUME"] = std::string("1");
  if (place.gpus.has_value()) environment["CUDA_VISIBLE_DEVICES"] = *place.gpus;
  plan.environment = Entries(environment);
  plan.working_directory =
      config.working_directory.value_or(place.working_directory);
  plan.token = place.token;
  plan.attempt = place.attempt;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(folder.stderr_path(), error);
  if (!error) plan.stderr_begin = bytes;
  return plan;
}

}  // namespace tandem::slow_lane
