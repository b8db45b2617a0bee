// Serves MuJoCo environments to one trainer.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/core/server_main.h"
#include "engine_adapter/core/task_options.h"
#include "engine_adapter/core/task_request.h"
#include "engine_adapter/mujoco/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "transport/base/error.h"

ABSL_FLAG(std::string, task, "",
          "name of a task that --list_tasks prints; not together with --model");
ABSL_FLAG(std::string, model, "",
          "path of an MJCF file to serve as it is: observations qpos and qvel, "
          "actions ctrl, reward 0");
ABSL_FLAG(std::string, assets, "",
          "folder of the tasks' model files; empty: the installed ones");
ABSL_FLAG(std::string, task_options, "{}",
          "JSON object of the task's keyword options, such as "
          "{\"reset_noise_scale\": 0}");
ABSL_FLAG(std::optional<uint32_t>, max_episode_steps, std::nullopt,
          "number of steps that truncates an episode; 0: none; empty: the "
          "task's own, none with --model");
ABSL_FLAG(bool, list_tasks, false, "true: print the known tasks and leave");

namespace tandem {
namespace {

constexpr char kUsage[] =
    "Steps MuJoCo environments for the one trainer that attaches to its "
    "region.\n\n"
    "  server --task HalfCheetah-v5 --num_envs 64 --name demo\n"
    "  server --model robot.xml --num_envs 8\n\n"
    "Runs until SIGINT, SIGTERM, or its launcher leaves. Exit codes: 0 "
    "stopped, 1 failed, 2 wrong command line.";

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
    const ServerOptions& options) {
  if (absl::GetFlag(FLAGS_list_tasks)) {
    for (const std::string& name : MujocoTasks()) std::puts(name.c_str());
    return nullptr;
  }
  InstallMujocoLog(LogLine);
  const std::string task_name = absl::GetFlag(FLAGS_task);
  const std::string model = absl::GetFlag(FLAGS_model);
  if (task_name.empty() == model.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected either --task or --model, found ",
                                  task_name.empty() ? "neither" : "both",
                                  "; --list_tasks prints the tasks"));
  }
  absl::StatusOr<TaskOptions> task_options =
      TaskOptions::Parse(absl::GetFlag(FLAGS_task_options));
  if (!task_options.ok()) return task_options.status();
  TaskRequest request = {
      .num_envs = options.num_envs,
      .threads = options.threads,
      .options = *std::move(task_options),
      .assets_folder = absl::GetFlag(FLAGS_assets),
      .max_episode_steps = absl::GetFlag(FLAGS_max_episode_steps)};
  return task_name.empty() ? MakeModelEngine(model, std::move(request))
                           : MakeMujocoEngine(task_name, std::move(request));
}

int Main(int argc, char** argv) {
  return RunServer(argc, argv, kUsage, MakeEngine);
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
