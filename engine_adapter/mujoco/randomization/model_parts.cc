#include "engine_adapter/mujoco/randomization/model_parts.h"

#include <algorithm>

namespace tandem {
namespace {

bool IsExcluded(const mjModel& model, int body1, int body2) {
  const int signature = (std::min(body1, body2) << 16) + std::max(body1, body2);
  return std::count(model.exclude_signature,
                    model.exclude_signature + model.nexclude, signature) > 0;
}

// The same filters as MuJoCo's.
bool MayTouch(const mjModel& model, int geom1, int geom2) {
  if ((model.geom_contype[geom1] & model.geom_conaffinity[geom2]) == 0 &&
      (model.geom_contype[geom2] & model.geom_conaffinity[geom1]) == 0) {
    return false;
  }
  const int body1 = model.geom_bodyid[geom1];
  const int body2 = model.geom_bodyid[geom2];
  const int weld1 = model.body_weldid[body1];
  const int weld2 = model.body_weldid[body2];
  if (weld1 == weld2 || IsExcluded(model, body1, body2)) return false;
  if ((model.opt.disableflags & mjDSBL_FILTERPARENT) != 0) return true;
  if (weld1 == 0 || weld2 == 0) return true;
  return model.body_weldid[model.body_parentid[weld1]] != weld2 &&
         model.body_weldid[model.body_parentid[weld2]] != weld1;
}

// Returns a contact's condim; 1 means no friction.
int Dimensions(const mjModel& model, int geom1, int geom2) {
  const int priority1 = model.geom_priority[geom1];
  const int priority2 = model.geom_priority[geom2];
  const int dimensions1 = model.geom_condim[geom1];
  const int dimensions2 = model.geom_condim[geom2];
  if (priority1 == priority2) return std::max(dimensions1, dimensions2);
  return priority1 > priority2 ? dimensions1 : dimensions2;
}

void FindContacts(const mjModel& model, ModelParts* parts) {
  constexpr int kOff = mjDSBL_CONTACT | mjDSBL_CONSTRAINT;
  if ((model.opt.disableflags & kOff) != 0) return;
  for (int i = 0; i < model.npair; ++i) {
    parts->has_contacts = true;
    parts->has_friction |= model.pair_dim[i] > 1;
  }
  for (int i = 0; i < model.ngeom; ++i) {
    for (int j = i + 1; j < model.ngeom; ++j) {
      if (parts->has_friction) return;  // both are found
      if (!MayTouch(model, i, j)) continue;
      parts->has_contacts = true;
      parts->has_friction |= Dimensions(model, i, j) > 1;
    }
  }
}

bool IsMotor(const mjModel& model, int actuator) {
  if (model.actuator_plugin[actuator] >= 0) return false;
  const int gain = model.actuator_gaintype[actuator];
  const int bias = model.actuator_biastype[actuator];
  return (gain == mjGAIN_FIXED || gain == mjGAIN_AFFINE ||
          gain == mjGAIN_MUSCLE) &&
         (bias == mjBIAS_NONE || bias == mjBIAS_AFFINE ||
          bias == mjBIAS_MUSCLE);
}

// With an integrator as activation, the actuator takes a velocity.
bool IsPositionMotor(const mjModel& model, int actuator) {
  const int activation = model.actuator_dyntype[actuator];
  const mjtNum kp = model.actuator_gainprm[mjNGAIN * actuator];
  return model.actuator_gaintype[actuator] == mjGAIN_FIXED &&
         model.actuator_biastype[actuator] == mjBIAS_AFFINE && kp != 0 &&
         model.actuator_biasprm[mjNBIAS * actuator + 1] == -kp &&
         (activation == mjDYN_NONE || activation == mjDYN_FILTER ||
          activation == mjDYN_FILTEREXACT);
}

}  // namespace

ModelParts FindModelParts(const mjModel& model) {
  ModelParts parts;
  parts.base = FindFloatingBase(model);
  for (int i = 0; i < model.njnt; ++i) {
    if (model.jnt_type[i] == mjJNT_FREE || parts.base.HasJoint(i)) continue;
    parts.joints.push_back(i);
  }
  FindContacts(model, &parts);
  parts.has_terrain = std::count(model.geom_type, model.geom_type + model.ngeom,
                                 mjGEOM_HFIELD) > 0;
  for (int i = 1; i < model.nbody; ++i) {
    if (model.body_treeid[i] < 0 || model.body_simple[i] != 0) continue;
    parts.offset_bodies.push_back(i);
  }
  for (int i = 0; i < model.nactuator; ++i) {
    if (!IsMotor(model, i)) continue;
    parts.motors.push_back(i);
    if (IsPositionMotor(model, i)) parts.position_motors.push_back(i);
  }
  return parts;
}

std::vector<std::string> UnusedFields(const Contract& contract,
                                      const ModelParts& parts,
                                      bool follows_commands) {
  std::vector<std::string> unused;
  const auto check = [&](const char* field, bool is_given, bool has_use) {
    if (is_given && !has_use) unused.emplace_back(field);
  };
  const FloatingBase& base = parts.base;
  bool has_position_noise = false;
  bool uses_position_noise = false;
  for (int axis = 0; axis < 3; ++axis) {
    if (contract.pose_position_noise[static_cast<size_t>(axis)] == 0) continue;
    has_position_noise = true;
    uses_position_noise |= base.MovesAlong(axis);
  }
  const bool has_joints = !parts.joints.empty();
  const bool pushes = base.MovesLevel() && contract.push_interval.has_value() &&
                      contract.push_velocity.has_value();
  const auto& command = contract.velocity_command;
  const bool commands =
      follows_commands && (command[0] || command[1] || command[2]);
  const bool rises = parts.has_terrain && contract.terrain.value_or(
                                              Terrain::kFlat) != Terrain::kFlat;

  check("pose_position_noise", has_position_noise, uses_position_noise);
  check("pose_orientation_noise", contract.pose_orientation_noise != 0,
        base.Turns());
  check("joint_position_noise", contract.joint_position_noise != 0, has_joints);
  check("joint_velocity_noise", contract.joint_velocity_noise != 0, has_joints);
  check("friction_range", contract.friction.has_value(), parts.has_friction);
  check("restitution_range", contract.restitution.has_value(),
        parts.has_contacts);
  check("com_offset_range", contract.com_offset.has_value(),
        !parts.offset_bodies.empty());
  check("motor_strength_range", contract.motor_strength.has_value(),
        !parts.motors.empty());
  check("motor_offset_range", contract.motor_offset.has_value(),
        !parts.position_motors.empty());
  check("push_interval_range", contract.push_interval.has_value(), pushes);
  check("push_velocity_range", contract.push_velocity.has_value(), pushes);
  check("terrain_type", contract.terrain.has_value(), parts.has_terrain);
  check("terrain_difficulty", contract.terrain_difficulty != 0, rises);
  check("vel_command_x_range", command[0].has_value(), follows_commands);
  check("vel_command_y_range", command[1].has_value(), follows_commands);
  check("vel_command_yaw_range", command[2].has_value(), follows_commands);
  check("vel_command_resampling_time_range",
        contract.command_resampling_time.has_value(), commands);
  check("vel_command_standing_probability", contract.standing_probability != 0,
        commands);
  return unused;
}

}  // namespace tandem
