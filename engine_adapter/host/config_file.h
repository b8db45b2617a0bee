// Configuration files: flags, written down as JSON.
//
// Data flow: file -> ReadConfigFile -> names and values, as on a command line.
//
//   {"task": "Ant-v5", "num_envs": 64, "services": ["agent", "scene"],
//    "stream_hz": {"camera": 10}, "task_options": {"healthy_reward": 2}}

#ifndef TANDEM_ENGINE_ADAPTER_HOST_CONFIG_FILE_H_
#define TANDEM_ENGINE_ADAPTER_HOST_CONFIG_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

// An object of flags by their names, without dashes. Texts are taken as they
// are, numbers and booleans as they are written, lists with commas between
// their elements, objects as their own JSON. kInvalidArgument for what cannot
// be read, or is not that; says where in the file.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ReadConfigFile(
    const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_CONFIG_FILE_H_
