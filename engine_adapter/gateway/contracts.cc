#include "engine_adapter/gateway/contracts.h"

namespace tandem::gateway {

rpc::SimulationContractT ToEngine(const hazel::rpc::SimulationContract& from) {
  rpc::SimulationContractT to;
#define TANDEM_LIST(field) to.field.assign(from.field().begin(), from.field().end())
#define TANDEM_VALUE(field) to.field = from.field()
  TANDEM_LIST(pose_position_noise);
  TANDEM_VALUE(pose_orientation_noise);
  TANDEM_VALUE(joint_position_noise);
  TANDEM_VALUE(joint_velocity_noise);
  TANDEM_LIST(friction_range);
  TANDEM_LIST(restitution_range);
  TANDEM_LIST(mass_scale_range);
  TANDEM_LIST(com_offset_range);
  TANDEM_LIST(motor_strength_range);
  TANDEM_LIST(motor_offset_range);
  TANDEM_LIST(push_interval_range);
  TANDEM_LIST(push_velocity_range);
  TANDEM_VALUE(terrain_type);
  TANDEM_VALUE(terrain_difficulty);
  TANDEM_LIST(vel_command_x_range);
  TANDEM_LIST(vel_command_y_range);
  TANDEM_LIST(vel_command_yaw_range);
  TANDEM_LIST(vel_command_resampling_time_range);
  TANDEM_VALUE(vel_command_standing_probability);
#undef TANDEM_LIST
#undef TANDEM_VALUE
  return to;
}

}  // namespace tandem::gateway
