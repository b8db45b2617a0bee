// Serves environments of any task that Tandem knows to one trainer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quoted.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/core/task_options.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/server_main.h"

ABSL_FLAG(std::string, task, "",
          "name of a task that --list_tasks prints; not together with --model");
ABSL_FLAG(std::string, model, "",
          "path of an MJCF file to serve as it is: observations qpos and qvel, "
          "actions ctrl, reward 0");
ABSL_FLAG(std::string, task_options, "{}",
          "the task's keyword options, a JSON object such as "
          "{\"reset_noise_scale\": 0.1}; infinities are \"inf\" and \"-inf\"");
ABSL_FLAG(std::string, assets, "",
          "folder of the tasks' model files; empty: the installed ones");
ABSL_FLAG(std::optional<uint32_t>, max_episode_steps, std::nullopt,
          "number of steps that truncates an episode, at most 4294967295; 0: "
          "none; empty: the task's own, none with --model");
ABSL_FLAG(std::string, save_scene, "",
          "file *.glb: write the 3D scene of --model, and leave");
ABSL_FLAG(std::string, compiled_by, "",
          "with --save_scene: the version of MuJoCo whose compiled model "
          "(.mjb) --model is; empty: --model is MJCF");
ABSL_FLAG(bool, list_tasks, false, "true: print the known tasks and leave");

namespace tandem {
namespace {

constexpr char kUsage[] =
    "Steps environments for the one trainer that attaches to its region.\n\n"
    "  tandem-engine --task HalfCheetah-v5 --num_envs 64 --name demo\n"
    "  tandem-engine --task Pendulum-v1 --task_options '{\"g\": 9.81}'\n"
    "  tandem-engine --model robot.xml --num_envs 8\n\n"
    "Then, in Python: tandem.SharedMemoryClient(\"demo\").\n\n"
    "Runs until SIGINT, SIGTERM, or its launcher leaves. Exit codes: 0 "
    "stopped, 1 failed, 2 wrong command line.";

struct Family {
  std::vector<std::string> (*tasks)();
  absl::StatusOr<std::unique_ptr<Engine>> (*make)(const std::string& task,
                                                  TaskRequest request);
};

constexpr std::array<Family, 2> kFamilies = {{
    {ClassicControlTasks, MakeClassicControlEngine},
    {MujocoTasks, MakeMujocoEngine},
}};

std::vector<std::string> AllTasks() {
  std::vector<std::string> all;
  for (const Family& family : kFamilies) {
    for (std::string& task : family.tasks()) all.push_back(std::move(task));
  }
  std::sort(all.begin(), all.end());
  return all;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeTaskEngine(const std::string& task,
                                                       TaskRequest request) {
  for (const Family& family : kFamilies) {
    const std::vector<std::string> tasks = family.tasks();
    if (std::find(tasks.begin(), tasks.end(), task) != tasks.end()) {
      return family.make(task, std::move(request));
    }
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("--task: unknown task: expected one of ",
                   absl::StrJoin(AllTasks(), ", "), ", found ", Quoted(task)));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
    const ServerOptions& options) {
  if (absl::GetFlag(FLAGS_list_tasks)) {
    for (const std::string& name : AllTasks()) std::puts(name.c_str());
    return nullptr;
  }
  InstallMujocoLog(LogLine);
  const std::string task = absl::GetFlag(FLAGS_task);
  const std::string model = absl::GetFlag(FLAGS_model);
  if (const std::string glb = absl::GetFlag(FLAGS_save_scene); !glb.empty()) {
    TANDEM_RETURN_IF_ERROR(
        SaveModelScene(model, absl::GetFlag(FLAGS_compiled_by), glb));
    return nullptr;
  }
  if (task.empty() == model.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("--task, --model: expected one of them, found ",
                     task.empty() ? "neither" : "both",
                     "; tandem-engine --list_tasks prints the tasks"));
  }
  TANDEM_ASSIGN_OR_RETURN(
      TaskOptions task_options,
      TaskOptions::Parse(absl::GetFlag(FLAGS_task_options)));
  TaskRequest request = {
      .num_envs = options.num_envs,
      .threads = options.threads,
      .options = std::move(task_options),
      .assets_folder = absl::GetFlag(FLAGS_assets),
      .max_episode_steps = absl::GetFlag(FLAGS_max_episode_steps)};
  return task.empty() ? MakeModelEngine(model, std::move(request))
                      : MakeTaskEngine(task, std::move(request));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  return tandem::RunServer(argc, argv, tandem::kUsage, tandem::MakeEngine);
}
