// Ant-v5: run forward on four legs without falling or flipping.
#include <algorithm>
#include <cmath>
#include <span>

#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class Ant final : public NoisyStartTask {
 public:
  explicit Ant(TaskSetup& setup) : NoisyStartTask(setup, 0.1, AddNormal, 2) {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1);
    ctrl_cost_weight_ =
        static_cast<float>(options.Number("ctrl_cost_weight", 0.5));
    contact_cost_weight_ = options.Number("contact_cost_weight", 5e-4);
    healthy_reward_ = options.Number("healthy_reward", 1);
    main_body_ = setup.BodyOrIndex(options.TextOrIndex("main_body", "1"));
    terminate_when_unhealthy_ = options.Bool("terminate_when_unhealthy", true);
    healthy_z_range_ = options.Range("healthy_z_range", {0.2, 1});
    contact_force_range_ = options.Range("contact_force_range", {-1, 1});
    include_cfrc_ext_ = options.Bool("include_cfrc_ext_in_observation", true);
    setup.NeedPositions(3);
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    PutPositions(data, obs);
    obs.Put({"qvel", VelocityName}, Qvel(data));
    if (!include_cfrc_ext_) return;
    // The first six are the world's.
    for (size_t i = 6; i < ContactForces(); ++i) {
      obs.Put({"cfrc_ext", BodyNumberName<6>, i}, ContactForce(data, i));
    }
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
    infos.Put("y_position", data.qpos[1]);
    infos.Put("distance_from_origin", mju_norm(data.qpos, 2));
  }

  std::span<mjtNum> ReadBeforeStep(mjData* data) const override {
    return {data->xpos + mjtSize{3} * main_body_, 3};
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    const std::span<const mjtNum, 3> place = Place(*data, main_body_);
    const double x_before = place[0];
    const double y_before = place[1];
    Simulate(data);
    const double x_velocity = Velocity(x_before, place[0]);
    const double y_velocity = Velocity(y_before, place[1]);

    const bool healthy = IsHealthy(*data);
    const double forward = x_velocity * forward_reward_weight_;
    const double survive = healthy ? healthy_reward_ : 0;
    const float ctrl_cost = ctrl_cost_weight_ * SumOfSquares(action);
    const double contact_cost = ContactCost(*data);
    infos.Put("x_velocity", x_velocity);
    infos.Put("y_velocity", y_velocity);
    infos.Put("reward_forward", forward);
    infos.Put("reward_ctrl", -ctrl_cost);
    infos.Put("reward_contact", -contact_cost);
    infos.Put("reward_survive", survive);
    const double reward =
        (forward + survive) - (double{ctrl_cost} + contact_cost);
    return {.reward = static_cast<float>(reward),
            .terminated = !healthy && terminate_when_unhealthy_};
  }

 private:
  size_t ContactForces() const {
    return static_cast<size_t>(model().nbody) * 6;
  }

  double ContactForce(const mjData& data, size_t i) const {
    return std::clamp(data.cfrc_ext[i], contact_force_range_.first,
                      contact_force_range_.second);
  }

  double ContactCost(const mjData& data) const {
    const auto square = [&](size_t i) {
      const double force = ContactForce(data, i);
      return force * force;
    };
    return contact_cost_weight_ * NumpySum<double>(0, ContactForces(), square);
  }

  bool IsHealthy(const mjData& data) const {
    const auto is_finite = [](mjtNum value) { return std::isfinite(value); };
    return std::ranges::all_of(Qpos(data), is_finite) &&
           std::ranges::all_of(Qvel(data), is_finite) &&
           healthy_z_range_.first <= data.qpos[2] &&
           data.qpos[2] <= healthy_z_range_.second;
  }

  double forward_reward_weight_;
  float ctrl_cost_weight_;
  double contact_cost_weight_;
  double healthy_reward_;
  int main_body_;
  bool terminate_when_unhealthy_;
  Range healthy_z_range_;
  Range contact_force_range_;
  bool include_cfrc_ext_;
};

}  // namespace

const TaskType kAnt = {.name = "Ant-v5",
                       .xml_file = "ant.xml",
                       .frame_skip = 5,
                       .max_episode_steps = 1000,
                       .make = MakeTask<Ant>,
                       .camera = CameraView{.distance = 4, .follow_body = 1}};

}  // namespace tandem
