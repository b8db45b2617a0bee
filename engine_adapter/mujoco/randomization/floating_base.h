// FloatingBase: the joints by which a robot's root moves freely in the world.
//
// Data flow: mjModel -> FindFloatingBase -> noise on the pose, pushes.
//
//   const FloatingBase base = FindFloatingBase(model);
//   if (base.free_joint >= 0) ...

#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <vector>

namespace tandem {

// The robot is the kinematic tree that the first actuator moves; if no actuator
// moves a tree, the first tree. The base is the free joint of the tree's
// topmost body. Without a free joint, the base has those joints of this body
// that no actuator moves:
//  - slides along x, y or z, before the first turn: HalfCheetah's rootx, rootz
//  - if there is such a slide, turns: HalfCheetah's rooty
// An arm on a stand and a driven cart have no base.
struct FloatingBase {
  struct Slide {
    int joint = -1;    // -1: none
    mjtNum along = 1;  // -1: the joint's axis is opposite to the world's
  };
  int free_joint = -1;
  std::array<Slide, 3> slides;
  std::vector<int> turns;  // hinges and ball joints

  bool HasJoint(int joint) const;
  bool MovesAlong(int axis) const {
    return free_joint >= 0 || slides[static_cast<size_t>(axis)].joint >= 0;
  }
  bool Turns() const { return free_joint >= 0 || !turns.empty(); }
  bool MovesLevel() const { return MovesAlong(0) || MovesAlong(1); }
};

FloatingBase FindFloatingBase(const mjModel& model);

}  // namespace tandem
