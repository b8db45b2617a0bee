// Humanoid-v5: walk forward on two legs without falling. HumanoidStandup-v5:
// get up from lying on the floor.
#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

constexpr size_t kRootVelocities = 6;  // no actuator drives them

// The common observations and costs. One cost has a different name in each.
class HumanoidBase : public NoisyStartTask {
 public:
  HumanoidBase(TaskSetup& setup, const std::string& force_cost)
      : NoisyStartTask(setup, 1e-2, AddUniform, 2) {
    TaskOptions& options = setup.options();
    include_cinert_ = options.Bool("include_cinert_in_observation", true);
    include_cvel_ = options.Bool("include_cvel_in_observation", true);
    include_qfrc_actuator_ =
        options.Bool("include_qfrc_actuator_in_observation", true);
    include_cfrc_ext_ = options.Bool("include_cfrc_ext_in_observation", true);
    ctrl_cost_weight_ = options.Number("ctrl_cost_weight", 0.1);
    force_cost_weight_ = options.Number(force_cost + "_weight", 5e-7);
    force_cost_range_ = options.Range(
        force_cost + "_range", {-std::numeric_limits<double>::infinity(), 10});
    setup.NeedPositions(3);
    if (include_qfrc_actuator_) {
      setup.NeedAtLeast(kRootVelocities, setup.model().nv, "velocities (nv)");
    }
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    PutPositions(data, obs);
    obs.Put({"qvel", VelocityName}, Qvel(data));
    // The first body is the world, which is omitted.
    if (include_cinert_) {
      obs.Put({"cinert", BodyNumberName<10>, 10},
              OfBodies(data.cinert, 10).subspan(10));
    }
    if (include_cvel_) {
      obs.Put({"cvel", BodyNumberName<6>, 6},
              OfBodies(data.cvel, 6).subspan(6));
    }
    if (include_qfrc_actuator_) {
      const std::span<const mjtNum> forces(data.qfrc_actuator,
                                           Qvel(data).size());
      obs.Put({"qfrc_actuator", VelocityName, kRootVelocities},
              forces.subspan(kRootVelocities));
    }
    if (include_cfrc_ext_) {
      obs.Put({"cfrc_ext", BodyNumberName<6>, 6},
              OfBodies(data.cfrc_ext, 6).subspan(6));
    }
  }

 protected:
  size_t Bodies() const { return static_cast<size_t>(model().nbody); }

  double CtrlCost(const mjData& data) const {
    return ctrl_cost_weight_ * SumOfSquares(std::span<const mjtNum>(
                                   data.ctrl, static_cast<size_t>(model().nu)));
  }
  double ForceCost(const mjData& data) const {
    return std::clamp(
        force_cost_weight_ * SumOfSquares(OfBodies(data.cfrc_ext, 6)),
        force_cost_range_.first, force_cost_range_.second);
  }
  void PutTendons(const mjData& data, InfoWriter& infos) const {
    const auto tendons = static_cast<size_t>(model().ntendon);
    infos.Put("tendon_length", {data.ten_length, tendons});
    infos.Put("tendon_velocity", {data.ten_velocity, tendons});
  }

 private:
  std::span<const mjtNum> OfBodies(const mjtNum* values, size_t each) const {
    return {values, Bodies() * each};
  }

  bool include_cinert_;
  bool include_cvel_;
  bool include_qfrc_actuator_;
  bool include_cfrc_ext_;
  double ctrl_cost_weight_;
  double force_cost_weight_;
  Range force_cost_range_;
};

class Humanoid final : public HumanoidBase {
 public:
  explicit Humanoid(TaskSetup& setup) : HumanoidBase(setup, "contact_cost") {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1.25);
    healthy_reward_ = options.Number("healthy_reward", 5);
    terminate_when_unhealthy_ = options.Bool("terminate_when_unhealthy", true);
    healthy_z_range_ = options.Range("healthy_z_range", {1, 2});
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
    infos.Put("y_position", data.qpos[1]);
    PutTendons(data, infos);
    infos.Put("distance_from_origin", mju_norm(data.qpos, 2));
  }

  std::span<mjtNum> ReadBeforeStep(mjData* data) const override {
    return {data->xipos, 3 * Bodies()};
  }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& infos) const override {
    const double x_before = MassCenter(*data, 0);
    const double y_before = MassCenter(*data, 1);
    Simulate(data);
    const double x_velocity = Velocity(x_before, MassCenter(*data, 0));
    const double y_velocity = Velocity(y_before, MassCenter(*data, 1));

    const bool healthy = IsWithin(data->qpos[2], healthy_z_range_);
    const double forward = forward_reward_weight_ * x_velocity;
    const double survive = healthy ? healthy_reward_ : 0;
    const double ctrl_cost = CtrlCost(*data);
    const double contact_cost = ForceCost(*data);
    infos.Put("x_velocity", x_velocity);
    infos.Put("y_velocity", y_velocity);
    infos.Put("reward_survive", survive);
    infos.Put("reward_forward", forward);
    infos.Put("reward_ctrl", -ctrl_cost);
    infos.Put("reward_contact", -contact_cost);
    return {.reward = static_cast<float>((forward + survive) -
                                         (ctrl_cost + contact_cost)),
            .terminated = !healthy && terminate_when_unhealthy_};
  }

 private:
  double MassCenter(const mjData& data, size_t axis) const {
    double sum = 0;
    for (size_t i = 0; i < Bodies(); ++i) {
      sum += model().body_mass[i] * data.xipos[3 * i + axis];
    }
    // In each step: a contract may change the masses each episode.
    return sum / NumpySum<double>(0, Bodies(), [&](size_t i) {
             return model().body_mass[i];
           });
  }

  double forward_reward_weight_;
  double healthy_reward_;
  bool terminate_when_unhealthy_;
  Range healthy_z_range_;
};

class HumanoidStandup final : public HumanoidBase {
 public:
  explicit HumanoidStandup(TaskSetup& setup)
      : HumanoidBase(setup, "impact_cost") {
    setup.options().Number("uph_cost_weight", 1);  // Gymnasium ignores it, too
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
    infos.Put("y_position", data.qpos[1]);
    infos.Put("z_distance_from_origin", data.qpos[2] - model().qpos0[2]);
    PutTendons(data, infos);
  }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& infos) const override {
    Simulate(data);
    const double up = data->qpos[2] / model().opt.timestep;
    const double ctrl_cost = CtrlCost(*data);
    const double impact_cost = ForceCost(*data);
    infos.Put("reward_linup", up);
    infos.Put("reward_quadctrl", -ctrl_cost);
    infos.Put("reward_impact", -impact_cost);
    return {.reward = static_cast<float>(up - ctrl_cost - impact_cost + 1),
            .terminated = false};
  }
};

}  // namespace

const TaskType kHumanoid = {.name = "Humanoid-v5",
                            .xml_file = "humanoid.xml",
                            .frame_skip = 5,
                            .max_episode_steps = 1000,
                            .make = MakeTask<Humanoid>,
                            .camera = CameraView{.distance = 4,
                                                 .lookat = {{0, 0, 2}},
                                                 .elevation = -20,
                                                 .follow_body = 1}};

const TaskType kHumanoidStandup = {
    .name = "HumanoidStandup-v5",
    .xml_file = "humanoidstandup.xml",
    .frame_skip = 5,
    .max_episode_steps = 1000,
    .make = MakeTask<HumanoidStandup>,
    .camera = CameraView{.distance = 4,
                         .lookat = {{0, 0, 0.8925}},
                         .elevation = -20,
                         .follow_body = 1}};

}  // namespace tandem
