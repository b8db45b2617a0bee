#include "engine_adapter/mujoco/randomization/model_draws.h"

#include <mujoco/mjxmacro.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

#include "absl/strings/string_view.h"
#include "engine_adapter/mujoco/model/pose.h"
#include "engine_adapter/mujoco/randomization/terrain.h"

namespace tandem {
namespace {

// The arrays that DrawModel writes.
constexpr absl::string_view kDrawn[] = {
    "body_mass",           "body_inertia",     "body_ipos",
    "geom_friction",       "geom_solref",      "pair_friction",
    "pair_solref",         "actuator_gainprm", "actuator_biasprm",
    "actuator_forcerange", "jnt_actfrcrange",  "tendon_actfrcrange",
    "hfield_data",
};

// mj_setConst derives these from positions only. DrawModel changes no
// positions, but services do. So RestoreModel leaves these arrays.
constexpr absl::string_view kOfPlaces[] = {"cam_pos0", "cam_mat0", "light_pos0",
                                           "light_dir0"};

// One column for each group of mj_setConst's computations.
struct SetConstUse {
  absl::string_view array;
  int fixed, kinematics, inertia, springs;
};
constexpr SetConstUse kSetConstUses[] = {
#define X(name, fixed, kinematics, inertia, springs) \
  {#name, fixed, kinematics, inertia, springs},
    MJSETCONST_ARRAYS
#undef X
};

constexpr bool IsRestored(absl::string_view array) {
  if (std::ranges::find(kDrawn, array) != std::end(kDrawn)) return true;
  if (std::ranges::find(kOfPlaces, array) != std::end(kOfPlaces)) return false;
  for (const SetConstUse& use : kSetConstUses) {
    if (use.array != array) continue;
    return ((use.fixed | use.kinematics | use.inertia | use.springs) &
            mjSC_OUT) != 0;
  }
  return false;
}

std::span<mjtNum> Numbers(mjtNum* array, mjtSize count) {
  return {array, static_cast<size_t>(count)};
}

void Scale(std::span<mjtNum> numbers, double factor) {
  for (mjtNum& number : numbers) number *= factor;
}

// Sets the friction of the tangential directions, and of the override that a
// model can enable for all contacts.
void SetFriction(double friction, mjModel* model) {
  for (int i = 0; i < model->ngeom; ++i) {
    model->geom_friction[mjtSize{3} * i] = friction;
  }
  for (int i = 0; i < model->npair; ++i) {
    std::fill_n(model->pair_friction + mjtSize{5} * i, 2, friction);
  }
  std::fill_n(model->opt.o_friction, 2, friction);
}

void SetRestitutions(double restitution, mjModel* model) {
  const double timestep = model->opt.timestep;
  for (int i = 0; i < model->ngeom; ++i) {
    SetRestitution(restitution, timestep,
                   model->geom_solref + mjtSize{mjNREF} * i);
  }
  for (int i = 0; i < model->npair; ++i) {
    SetRestitution(restitution, timestep,
                   model->pair_solref + mjtSize{mjNREF} * i);
  }
  SetRestitution(restitution, timestep, model->opt.o_solref);
}

void ScaleMasses(double factor, mjModel* model) {
  Scale(Numbers(model->body_mass, model->nbody), factor);
  Scale(Numbers(model->body_inertia, model->nbody * mjtSize{3}), factor);
}

// A muscle's parameters are range[2], force, scale, lmin, lmax, vmax, fpmax,
// fvmax. Its force is proportional to `force`, or to `scale` if `force` is
// negative.
std::span<mjtNum> Strengths(bool is_muscle, mjtNum* parameters, size_t count) {
  return is_muscle ? std::span(parameters + 2, 2)
                   : std::span(parameters, count);
}

// Scales the force limits, too: the factor then also holds at a limit.
void ScaleMotors(const ModelParts& parts, double factor, mjModel* model) {
  for (const int motor : parts.motors) {
    Scale(
        Strengths(model->actuator_gaintype[motor] == mjGAIN_MUSCLE,
                  model->actuator_gainprm + mjtSize{mjNGAIN} * motor, mjNGAIN),
        factor);
    Scale(
        Strengths(model->actuator_biastype[motor] == mjBIAS_MUSCLE,
                  model->actuator_biasprm + mjtSize{mjNBIAS} * motor, mjNBIAS),
        factor);
    Scale(Numbers(model->actuator_forcerange + mjtSize{2} * motor, 2), factor);
  }
  Scale(Numbers(model->jnt_actfrcrange, mjtSize{2} * model->njnt), factor);
  Scale(Numbers(model->tendon_actfrcrange, mjtSize{2} * model->ntendon),
        factor);
}

// The force becomes kp * (ctrl + gear * offset - length). The offset is in the
// constant part of the force. So ctrl and its limits do not change.
void OffsetMotors(const ModelParts& parts, double offset, mjModel* model) {
  for (const int motor : parts.position_motors) {
    const mjtNum kp = model->actuator_gainprm[mjtSize{mjNGAIN} * motor];
    const mjtNum gear =
        model->actuator_gear[mjtSize{6} * model->actuator_outadr[motor]];
    model->actuator_biasprm[mjtSize{mjNBIAS} * motor] += kp * gear * offset;
  }
}

// The mean inertia that MuJoCo's compiler sets if the file has none. Solvers
// scale their tolerance by it.
mjtNum MeanInertia(const mjModel& model) {
  return std::accumulate(model.dof_M0, model.dof_M0 + model.nv, mjtNum{0}) /
         static_cast<mjtNum>(model.nv);
}

// mj_setConst derives all arrays from the drawn values, sameframe flags and
// bounding boxes included. It does not derive `stat`.
void DeriveConstants(mjModel* model, mjData* data) {
  const bool is_derived = model->stat.meaninertia == MeanInertia(*model);
  mj_setConst(model, data);
  if (is_derived) model->stat.meaninertia = MeanInertia(*model);
}

bool HasMoved(const mjModel& original, const mjModel& model, int geom) {
  const mjtSize pos = mjtSize{3} * geom;
  const mjtSize quat = mjtSize{4} * geom;
  return !std::equal(model.geom_pos + pos, model.geom_pos + pos + 3,
                     original.geom_pos + pos) ||
         !std::equal(model.geom_quat + quat, model.geom_quat + quat + 4,
                     original.geom_quat + quat);
}

}  // namespace

// MJMODEL_POINTERS uses MJ_M for a number of columns that is a model size.
#undef MJ_M
#define MJ_M(size) original.size

void RestoreModel(const mjModel& original, mjModel* model) {
#define X(type, name, rows, columns)                                       \
  if constexpr (IsRestored(#name)) {                                       \
    std::copy_n(                                                           \
        original.name,                                                     \
        static_cast<size_t>(original.rows) * static_cast<size_t>(columns), \
        model->name);                                                      \
  }
  MJMODEL_POINTERS
#undef X
#define X(name) model->name = original.name;
  MJSETCONST_SCALARS
#undef X
  model->stat.meaninertia = original.stat.meaninertia;
  std::ranges::copy(original.opt.o_friction, model->opt.o_friction);
  std::ranges::copy(original.opt.o_solref, model->opt.o_solref);
  for (int i = 0; i < model->ngeom; ++i) {
    if (HasMoved(original, *model, i)) FollowGeom(model, i);
  }
}

void DrawModel(const Contract& contract, const ModelParts& parts,
               EnvRandom& random, mjModel* model, mjData* data) {
  if (contract.friction) SetFriction(contract.friction->Draw(random), model);
  if (contract.restitution) {
    SetRestitutions(contract.restitution->Draw(random), model);
  }
  if (contract.mass_scale) {
    ScaleMasses(contract.mass_scale->Draw(random), model);
  }
  if (contract.com_offset) {
    std::array<double, 3> offset;
    for (double& each : offset) each = contract.com_offset->Draw(random);
    for (const int body : parts.offset_bodies) {
      mju_addTo3(model->body_ipos + mjtSize{3} * body, offset.data());
    }
  }
  if (contract.motor_strength) {
    ScaleMotors(parts, contract.motor_strength->Draw(random), model);
  }
  if (contract.motor_offset) {
    OffsetMotors(parts, contract.motor_offset->Draw(random), model);
  }
  if (contract.terrain) {
    SetTerrain(*contract.terrain, contract.terrain_difficulty, random, model);
  }
  if (contract.mass_scale || contract.com_offset) DeriveConstants(model, data);
}

double RestitutionOf(double damping_ratio) {
  const double z = damping_ratio;
  const double s = std::sqrt(std::abs(1 - z * z));
  if (s < 1e-6) return std::exp(-2.0);
  const double rest = z < 1 ? std::atan2(2 * z * s, 2 * z * z - 1)
                            : std::log((z + s) / (z - s));
  return std::exp(-z / s * rest);
}

double DampingRatioFor(double restitution) {
  double low = 1e-4;
  double high = 1e4;
  // Bisects the interval in logarithmic scale.
  for (int i = 0; i < 64; ++i) {
    const double middle = std::sqrt(low * high);
    (RestitutionOf(middle) > restitution ? low : high) = middle;
  }
  return high;
}

void SetRestitution(double restitution, double timestep, mjtNum* solref) {
  const double ratio = DampingRatioFor(restitution);
  if (solref[0] > 0) {  // (time constant, damping ratio)
    // The stiffness depends on their product. MuJoCo raises a time constant
    // below two steps to two.
    const double product = solref[0] * solref[1];
    solref[0] = std::max(product / ratio, 2 * timestep);
    solref[1] = product / solref[0];
  } else {  // (-stiffness, -damping)
    const double damping = 2 * ratio * std::sqrt(-solref[0]);
    solref[1] = -std::min(damping, 1 / timestep);
  }
}

}  // namespace tandem
