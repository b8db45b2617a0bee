// The tasks that this engine knows, by Gymnasium's names.
//
// Data flow: name and options -> Task.
//
//   absl::StatusOr<std::unique_ptr<Task>> task =
//       MakeTask("HalfCheetah-v5", {});

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_TASK_REGISTRY_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_TASK_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/mujoco/task.h"

namespace tandem {

// In alphabetical order.
std::vector<std::string> KnownTasks();

// Errors: the task's own; kInvalidArgument for an unknown name, listing the
// known ones.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(
    absl::string_view name, const MujocoTaskOptions& options);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_TASK_REGISTRY_H_
