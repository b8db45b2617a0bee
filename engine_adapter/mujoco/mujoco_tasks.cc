#include "engine_adapter/mujoco/mujoco_tasks.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/utf8_path.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/core/environment_engine.h"
#include "engine_adapter/core/region_room.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/environment/mujoco_randomization.h"
#include "engine_adapter/mujoco/environment/mujoco_scene.h"
#include "engine_adapter/mujoco/environment/mujoco_state_port.h"
#include "engine_adapter/mujoco/model/model_changes.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/row_writer.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/model/task_setup.h"
#include "engine_adapter/mujoco/render/mujoco_cameras.h"
#include "engine_adapter/mujoco/render/mujoco_frames.h"
#include "engine_adapter/mujoco/scene/mujoco_glb.h"
#include "engine_adapter/mujoco/scene/mujoco_scene_source.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"
#include "engine_adapter/scene_source.h"
#include "engine_adapter/task_description.h"

namespace tandem {
namespace {

constexpr size_t kLongestName = 63;
// The number of environments between two checks of the available memory.
constexpr uint32_t kCheckedAtOnce = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::StatusOr<std::shared_ptr<const Task>> MakeTheTask(
    const TaskType& type, std::shared_ptr<const mjModel> model,
    const std::string& path, TaskOptions options) {
  TaskSetup setup(std::move(model), path,
                  options.Count("frame_skip", type.frame_skip), &options);
  setup.NeedAtLeast(1, setup.model().nv, "velocities (nv)");
  setup.NeedAtLeast(1, setup.model().nu, "actuators (nu)");
  std::shared_ptr<const Task> task = type.make(setup);
  TANDEM_RETURN_IF_ERROR(options.Finish());
  if (!setup.status().ok()) return setup.status();
  return task;
}

TaskMaker MakerOf(const TaskType& type, std::string path, TaskOptions options) {
  return [&type, path = std::move(path),
          options = std::move(options)](std::shared_ptr<const mjModel> model) {
    absl::StatusOr<std::shared_ptr<const Task>> task =
        MakeTheTask(type, std::move(model), path, options);
    if (!task.ok()) {
      throw std::logic_error(std::string(task.status().message()));
    }
    return *std::move(task);
  };
}

// Rounds to float32, the type of Gymnasium's bounds.
double Rounded(mjtNum value) {
  return static_cast<double>(static_cast<float>(value));
}

// The bounds are MuJoCo's limits of the controls.
BoxSpace ActionSpace(const mjModel& model) {
  BoxSpace space = {.low = {}, .high = {}, .type = NumberType::kFloat32};
  for (int i = 0; i < model.nu; ++i) {
    const bool limited = model.actuator_ctrllimited[i] != 0;
    const mjtNum* const range = model.actuator_ctrlrange + mjtSize{2} * i;
    space.low.push_back(limited ? Rounded(range[0]) : -kInfinity);
    space.high.push_back(limited ? Rounded(range[1]) : kInfinity);
  }
  return space;
}

// Finds the observations and infos by a trial episode of one step, and the
// number of the infos of a reset.
absl::StatusOr<EngineSchema> TrySchema(const Task& task, mjData* data,
                                       size_t* reset_infos) {
  const mjModel& model = task.model();
  EngineSchema schema;
  schema.act_size = static_cast<uint32_t>(model.nu);
  schema.action_names = ActuatorNames(model);
  TaskDescription& description = schema.description;
  description.observation_space = BoxSpace{.type = NumberType::kFloat64};
  description.action_space = ActionSpace(model);
  try {
    mj_resetData(&model, data);
    EnvRandom random(0);
    task.Reset(data, random);
    mj_forward(&model, data);
    InfoWriter infos(&description.infos, /*at_reset=*/true);
    task.PutInfosOfState(*data, infos);
    *reset_infos = infos.count();
    const std::vector<float> action(schema.act_size);
    InfoWriter step_infos(&description.infos, /*at_reset=*/false);
    task.Step(action, data, step_infos);
    ObsWriter obs(&model, &schema.observation_names);
    task.Observe(*data, obs);
    if (task.FollowsVelocityCommand()) {
      PutVelocityCommand(kNoVelocityCommand, obs);
    }
    schema.obs_size = static_cast<uint32_t>(obs.count());
  } catch (const MujocoError& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("expected a model that can be stepped, "
                                  "found: ",
                                  error.what()));
  }
  return schema;
}

// What states of an environment depend on.
std::string Fingerprint(const mjModel& model) {
  return absl::StrCat("MuJoCo ", mj_versionString(), ", joints ", model.njnt,
                      ", time step ", model.opt.timestep, ", model ",
                      absl::Hex(ModelHash(model), absl::kZeroPad16));
}

// The ports of the services, and the renderers for viewers, observations and
// requests.
absl::StatusOr<EnvironmentFittings> Fittings(
    const std::shared_ptr<const Task>& task,
    const std::vector<MujocoEnvironment*>& served, const std::string& path,
    const std::optional<CameraView>& view) {
  const std::shared_ptr<const mjModel>& model = task->shared_model();
  const std::vector<const MujocoEnvironment*> drawn(served.begin(),
                                                    served.end());
  auto canvas =
      std::make_unique<DebugCanvas>(static_cast<uint32_t>(served.size()));
  TANDEM_ASSIGN_OR_RETURN(
      auto cameras, MujocoCameras::Create(model, drawn, view, canvas.get()));
  EnvironmentFittings fittings = {
      .step_secs = task->step_secs(),
      .fingerprint = Fingerprint(*model),
      .randomization = std::make_unique<MujocoRandomization>(task, served),
      .mujoco = std::make_unique<MujocoStatePort>(served),
      .scene = std::make_unique<MujocoScene>(served, path)};
  fittings.frames =
      std::make_unique<MujocoFrames>(model, drawn, view, canvas.get());
  fittings.images = std::make_unique<MujocoFrames>(model, drawn, view, nullptr);
  fittings.live_scene = std::make_unique<MujocoSceneSource>(model, drawn);
  fittings.camera = std::move(cameras);
  fittings.debug = std::move(canvas);
  return fittings;
}

// Estimates the memory of an environment, by a trial episode and by the
// environments made so far.
class EnvironmentMemory {
 public:
  explicit EnvironmentMemory(const mjData& tried)
      : arena_bytes_(static_cast<size_t>(tried.maxuse_arena)),
        stack_bytes_(static_cast<size_t>(tried.maxuse_stack)),
        tried_bytes_(sizeof(mjData) + WholePages(tried.nbuffer) +
                     WholePages(tried.maxuse_arena) +
                     WholePages(tried.maxuse_stack) + kPageTableBytes),
        resident_before_(ResidentMemoryBytes()) {}

  // Refuses if the kernel would kill a process for lack of memory. Reads files.
  absl::Status Check(uint32_t num_envs, uint32_t made) const {
    uint64_t each = tried_bytes_;
    if (made > 0) {
      const uint64_t resident = ResidentMemoryBytes();
      const uint64_t taken = resident - std::min(resident, resident_before_);
      each = std::max(each, taken / made);
    }
    const uint32_t left = num_envs - made;
    return CheckMemory(
        left * each + kRestBytes,
        made == 0 ? absl::StrCat(num_envs, " environments need")
                  : absl::StrCat(left, " of ", num_envs,
                                 " environments, made one by one, still need"),
        "use fewer environments");
  }

  // MuJoCo reserves megabytes for an arena; only touched pages take memory.
  // Touches them now, so that later checks, such as the region's, count them.
  void Touch(mjData* data) const {
    auto* const arena = static_cast<std::byte*>(data->arena);
    const auto size = static_cast<size_t>(data->narena);
    std::memset(arena, 0, std::min(arena_bytes_, size));
    const size_t stack = std::min(stack_bytes_, size);
    std::memset(arena + (size - stack), 0, stack);
  }

 private:
  static constexpr uint64_t kPage = 4096;
  // The kernel's page tables for an arena's two ends and other allocations.
  static constexpr uint64_t kPageTableBytes = 4 * kPage;
  // For threads and later allocations of the engine.
  static constexpr uint64_t kRestBytes = 4 << 20;

  static uint64_t WholePages(mjtSize bytes) {
    return (static_cast<uint64_t>(bytes) / kPage + 1) * kPage;
  }

  size_t arena_bytes_;
  size_t stack_bytes_;
  uint64_t tried_bytes_;
  uint64_t resident_before_;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const TaskType& type,
                                                   ModelPtr model,
                                                   const std::string& path,
                                                   std::string name,
                                                   const TaskRequest& request) {
  TANDEM_ASSIGN_OR_RETURN(
      const std::shared_ptr<const Task> task,
      MakeTheTask(type, std::move(model), path, request.options));
  absl::StatusOr<DataPtr> data = MakeData(task->model());
  if (!data.ok()) return data.status();
  size_t reset_infos = 0;
  TANDEM_ASSIGN_OR_RETURN(EngineSchema schema,
                          TrySchema(*task, data->get(), &reset_infos));
  schema.task = std::move(name);
  schema.description.max_episode_steps =
      request.max_episode_steps.value_or(type.max_episode_steps);
  schema.description.has_rewards = type.has_rewards;

  const EnvironmentMemory memory(**data);
  TANDEM_RETURN_IF_ERROR(memory.Check(request.num_envs, 0));
  TANDEM_RETURN_IF_ERROR(
      CheckRegionRoom(request.num_envs, schema.obs_size, schema.act_size));
  const TaskMaker make_task = MakerOf(type, path, request.options);
  std::vector<std::unique_ptr<Environment>> environments;
  environments.reserve(request.num_envs);
  std::vector<MujocoEnvironment*> served;
  while (environments.size() < request.num_envs) {
    auto environment = std::make_unique<MujocoEnvironment>(
        task, make_task, *std::move(data), reset_infos);
    served.push_back(environment.get());
    environments.push_back(std::move(environment));
    if (environments.size() == request.num_envs) break;
    data = MakeData(task->model());
    if (!data.ok()) return data.status();
    memory.Touch(data->get());
    if (environments.size() % kCheckedAtOnce == 0) {
      TANDEM_RETURN_IF_ERROR(memory.Check(
          request.num_envs, static_cast<uint32_t>(environments.size())));
    }
  }
  TANDEM_ASSIGN_OR_RETURN(EnvironmentFittings fittings,
                          Fittings(task, served, path, type.camera));
  return std::make_unique<EnvironmentEngine>(
      std::move(schema), std::move(environments), request.threads,
      std::move(fittings));
}

absl::Status About(absl::string_view argument, const absl::Status& status) {
  return MakeError(CodeOf(status),
                   absl::StrCat(argument, ": ", status.message()));
}

}  // namespace

std::vector<std::string> MujocoTasks() {
  std::vector<std::string> names;
  for (const TaskType* const type : kAllTasks) names.emplace_back(type->name);
  return names;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeMujocoEngine(
    const std::string& task, TaskRequest request) {
  const auto* const found = std::ranges::find(
      kAllTasks, task, [](const TaskType* type) { return type->name; });
  if (found == std::end(kAllTasks)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("task: expected one of ",
                     absl::StrJoin(MujocoTasks(), ", "), "; found '", task,
                     "'; for a model of your own use --model "
                     "FILE"));
  }
  const TaskType& type = **found;
  TANDEM_ASSIGN_OR_RETURN(
      ModelFile file,
      FindModelFile(request.options.Text("xml_file", type.xml_file),
                    request.assets_folder));
  absl::StatusOr<ModelPtr> model = LoadModel(file);
  if (!model.ok()) return About("xml_file", model.status());
  return MakeEngine(type, *std::move(model), file.path, type.name, request);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeModelEngine(
    const std::string& mjcf_path, TaskRequest request) {
  absl::StatusOr<ModelPtr> model = LoadModel({.path = mjcf_path});
  if (!model.ok()) return About("--model", model.status());
  std::string name = Utf8Path(mjcf_path).stem().string();
  name.resize(std::min(name.size(), kLongestName));
  return MakeEngine(kMjcfModel, *std::move(model), mjcf_path, std::move(name),
                    request);
}

absl::Status SaveModelScene(const std::string& model_path,
                            const std::string& compiled_by,
                            const std::string& glb_path) {
  TANDEM_ASSIGN_OR_RETURN(
      const ModelPtr model,
      LoadModel({.path = model_path, .compiled_by = compiled_by}));
  TANDEM_ASSIGN_OR_RETURN(const SceneModel scene, MujocoGlb(*model));
  std::ofstream file(glb_path, std::ios::binary);
  if ((file << scene.glb).flush()) return absl::OkStatus();
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("--save_scene: expected a file to write, found ", glb_path));
}

}  // namespace tandem
