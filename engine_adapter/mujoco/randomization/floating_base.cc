#include "engine_adapter/mujoco/randomization/floating_base.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tandem {
namespace {

// Returns the tree that the actuator moves, or -1.
int TreeOf(const mjModel& model, int actuator) {
  const int id = model.actuator_trnid[2 * actuator];
  switch (model.actuator_trntype[actuator]) {
    case mjTRN_JOINT:
    case mjTRN_JOINTINPARENT:
      return model.dof_treeid[model.jnt_dofadr[id]];
    case mjTRN_TENDON:
      return model.tendon_treeid[2 * id];
    case mjTRN_SLIDERCRANK:
    case mjTRN_SITE:
      return model.body_treeid[model.site_bodyid[id]];
    case mjTRN_BODY:
      return model.body_treeid[id];
    default:
      return -1;
  }
}

int RobotsTree(const mjModel& model) {
  for (int i = 0; i < model.nactuator; ++i) {
    if (const int tree = TreeOf(model, i); tree >= 0) return tree;
  }
  return 0;
}

bool IsWrapped(const mjModel& model, int tendon, int joint) {
  const int begin = model.tendon_adr[tendon];
  for (int i = begin; i < begin + model.tendon_num[tendon]; ++i) {
    if (model.wrap_type[i] == mjWRAP_JOINT && model.wrap_objid[i] == joint) {
      return true;
    }
  }
  return false;
}

bool IsDriven(const mjModel& model, int joint) {
  for (int i = 0; i < model.nactuator; ++i) {
    const int id = model.actuator_trnid[2 * i];
    const int type = model.actuator_trntype[i];
    const bool moves = type == mjTRN_JOINT || type == mjTRN_JOINTINPARENT;
    if (moves && id == joint) return true;
    if (type == mjTRN_TENDON && IsWrapped(model, id, joint)) return true;
  }
  return false;
}

// Returns the joint's axis in the world, in qpos0. No earlier joint turns.
std::array<mjtNum, 3> WorldAxis(const mjModel& model, int joint) {
  std::array<mjtNum, 3> axis;
  mju_copy3(axis.data(), model.jnt_axis + mjtSize{3} * joint);
  for (int body = model.jnt_bodyid[joint]; body > 0;
       body = model.body_parentid[body]) {
    const std::array<mjtNum, 3> before = axis;
    mju_rotVecQuat(axis.data(), before.data(),
                   model.body_quat + mjtSize{4} * body);
  }
  return axis;
}

void TakeSlide(const mjModel& model, int joint, FloatingBase* base) {
  constexpr mjtNum kParallel = 1 - 1e-9;
  const std::array<mjtNum, 3> axis = WorldAxis(model, joint);
  for (size_t i = 0; i < axis.size(); ++i) {
    FloatingBase::Slide& slide = base->slides[i];
    if (slide.joint >= 0 || std::abs(axis[i]) < kParallel) continue;
    slide = {.joint = joint, .along = axis[i] > 0 ? mjtNum{1} : mjtNum{-1}};
  }
}

}  // namespace

bool FloatingBase::HasJoint(int joint) const {
  if (joint == free_joint) return true;
  return std::ranges::find(slides, joint, &Slide::joint) != slides.end() ||
         std::ranges::find(turns, joint) != turns.end();
}

FloatingBase FindFloatingBase(const mjModel& model) {
  FloatingBase base;
  if (model.ntree == 0) return base;
  const int root = model.tree_bodyadr[RobotsTree(model)];
  const int first = model.body_jntadr[root];
  if (model.jnt_type[first] == mjJNT_FREE) {
    base.free_joint = first;
    return base;
  }
  bool has_turned = false;
  for (int i = first; i < first + model.body_jntnum[root]; ++i) {
    const bool turns = model.jnt_type[i] != mjJNT_SLIDE;
    has_turned |= turns;
    if (IsDriven(model, i)) continue;
    if (turns) base.turns.push_back(i);
    if (!has_turned) TakeSlide(model, i, &base);
  }
  const bool slides =
      base.MovesAlong(0) || base.MovesAlong(1) || base.MovesAlong(2);
  if (!slides) base.turns.clear();
  return base;
}

}  // namespace tandem
