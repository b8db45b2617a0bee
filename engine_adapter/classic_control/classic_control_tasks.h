// The classic control tasks, by Gymnasium's names: small, and without a
// physics library.
//
// Data flow: name and request -> Engine.
//
//   TaskRequest request = {.num_envs = 64, .threads = 2};
//   request.options = *TaskOptions::Parse(R"({"g": 9.81})");
//   MakeClassicControlEngine("Pendulum-v1", std::move(request));

#ifndef TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CLASSIC_CONTROL_TASKS_H_
#define TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CLASSIC_CONTROL_TASKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/task_options.h"

namespace tandem {

// In alphabetical order.
std::vector<std::string> ClassicControlTasks();

// kInvalidArgument for an unknown task or option, naming the known ones.
absl::StatusOr<std::unique_ptr<Engine>> MakeClassicControlEngine(
    const std::string& task, TaskRequest request);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CLASSIC_CONTROL_TASKS_H_
