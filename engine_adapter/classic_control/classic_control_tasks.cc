#include "engine_adapter/classic_control/classic_control_tasks.h"

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "engine_adapter/core/region_room.h"

namespace tandem {
namespace {

struct Row {
  const char* name;
  uint64_t obs_size;
  uint64_t act_size;
  absl::StatusOr<std::unique_ptr<Engine>> (*make)(TaskRequest request);
};

constexpr std::array<Row, 2> kTasks = {{
    {"CartPole-v1", 4, 1, MakeCartPole},
    {"Pendulum-v1", 3, 1, MakePendulum},
}};

// The memory of an environment: its state, random generator, rows in the region
// and entries in the host's lists.
constexpr uint64_t kBytesOfOne = 256;

}  // namespace

std::vector<std::string> ClassicControlTasks() {
  std::vector<std::string> names;
  names.reserve(kTasks.size());
  for (const Row& row : kTasks) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeClassicControlEngine(
    const std::string& task, TaskRequest request) {
  for (const Row& row : kTasks) {
    if (task != row.name) continue;
    TANDEM_RETURN_IF_ERROR(
        CheckMemory(request.num_envs * kBytesOfOne,
                    absl::StrCat(request.num_envs, " environments need"),
                    "use fewer environments"));
    TANDEM_RETURN_IF_ERROR(
        CheckRegionRoom(request.num_envs, row.obs_size, row.act_size));
    return row.make(std::move(request));
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("task: expected one of ",
                                absl::StrJoin(ClassicControlTasks(), ", "),
                                "; found '", task, "'"));
}

}  // namespace tandem
