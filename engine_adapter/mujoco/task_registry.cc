#include "engine_adapter/mujoco/task_registry.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine_adapter/mujoco/half_cheetah.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

struct Row {
  const char* name;
  absl::StatusOr<std::unique_ptr<Task>> (*create)(
      const MujocoTaskOptions& options);
};

constexpr std::array<Row, 1> kTasks = {{
    {"HalfCheetah-v5", HalfCheetah::Create},
}};

}  // namespace

std::vector<std::string> KnownTasks() {
  std::vector<std::string> names;
  names.reserve(kTasks.size());
  for (const Row& row : kTasks) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Task>> MakeTask(
    absl::string_view name, const MujocoTaskOptions& options) {
  for (const Row& row : kTasks) {
    if (name == row.name) return row.create(options);
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("task: expected one of ", absl::StrJoin(KnownTasks(), ", "),
                   "; found '", name,
                   "'; for a model of your own use --model FILE"));
}

}  // namespace tandem
