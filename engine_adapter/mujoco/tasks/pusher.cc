// Pusher-v5: push a cylinder to a goal with an arm of seven joints.
#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

constexpr size_t kArmJoints = 7;

class Pusher final : public Task {
 public:
  explicit Pusher(TaskSetup& setup) : Task(setup) {
    TaskOptions& options = setup.options();
    reward_near_weight_ = options.Number("reward_near_weight", 0.5);
    reward_dist_weight_ = options.Number("reward_dist_weight", 1);
    reward_control_weight_ =
        static_cast<float>(options.Number("reward_control_weight", 0.1));
    tips_arm_ = setup.Body("tips_arm");
    object_ = setup.Body("object");
    goal_ = setup.Body("goal");
    setup.NeedPositions(kArmJoints);
    setup.NeedAtLeast(kArmJoints, setup.model().nv, "velocities (nv)");
  }

  void Reset(mjData* data, EnvRandom& random) const override {
    // The cylinder's place, at a distance from the goal, then the goal's.
    const std::span<mjtNum> places = Qpos(data).last(4);
    do {
      places[0] = random.Uniform(-0.3, 0);
      places[1] = random.Uniform(-0.2, 0.2);
    } while (mju_norm(places.data(), 2) <= 0.17);
    places[2] = 0;
    places[3] = 0;
    AddUniform(Qvel(data), 0.005, random);
    for (mjtNum& value : Qvel(data).last(4)) value = 0;
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    obs.Put({"qpos", PositionName}, Qpos(data).first(kArmJoints));
    obs.Put({"qvel", VelocityName}, Qvel(data).first(kArmJoints));
    for (const int body : {tips_arm_, object_, goal_}) {
      obs.Put({"xpos", BodyAxisName, static_cast<size_t>(body) * 3},
              Place(data, body));
    }
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    Simulate(data);
    const mjtNum* const object = Place(*data, object_).data();
    const double near = mju_dist3(object, Place(*data, tips_arm_).data());
    const double dist = mju_dist3(object, Place(*data, goal_).data());
    const double reward_near = -near * reward_near_weight_;
    const double reward_dist = -dist * reward_dist_weight_;
    const float reward_ctrl = -SumOfSquares(action) * reward_control_weight_;
    infos.Put("reward_dist", reward_dist);
    infos.Put("reward_ctrl", reward_ctrl);
    infos.Put("reward_near", reward_near);
    return {.reward = static_cast<float>(reward_dist + double{reward_ctrl} +
                                         reward_near),
            .terminated = false};
  }

 private:
  double reward_near_weight_;
  double reward_dist_weight_;
  float reward_control_weight_;
  int tips_arm_;
  int object_;
  int goal_;
};

}  // namespace

const TaskType kPusher = {.name = "Pusher-v5",
                          .xml_file = "pusher_v5.xml",
                          .frame_skip = 5,
                          .max_episode_steps = 100,
                          .make = MakeTask<Pusher>,
                          .camera = CameraView{.distance = 4}};

}  // namespace tandem
