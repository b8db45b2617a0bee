// TaskRequest: what a server asks of a family of tasks.
//
// Data flow: the server's flags -> TaskRequest -> a family's factory -> Engine.
//
//   TaskRequest request = {.num_envs = 64, .threads = 2};
//   request.options = *TaskOptions::Parse(R"({"healthy_reward": 2})");
//   MakeMujocoEngine("Ant-v5", std::move(request));

#ifndef TANDEM_ENGINE_ADAPTER_CORE_TASK_REQUEST_H_
#define TANDEM_ENGINE_ADAPTER_CORE_TASK_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "engine_adapter/core/task_options.h"

namespace tandem {

struct TaskRequest {
  uint32_t num_envs = 1;
  int threads = 1;
  TaskOptions options = {};
  std::string assets_folder = {};                  // "": the installed one
  std::optional<uint32_t> max_episode_steps = {};  // none: the task's; 0: none
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_TASK_REQUEST_H_
