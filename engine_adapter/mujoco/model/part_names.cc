#include "engine_adapter/mujoco/model/part_names.h"

#include <array>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_join.h"

namespace tandem {
namespace {

std::string JointName(const mjModel& model, int joint) {
  const std::string name = OwnName(model, mjOBJ_JOINT, joint);
  return name.empty() ? absl::StrCat("joint ", joint) : name;
}

constexpr std::array kPositions = {"_x",  "_y",  "_z", "_qw",
                                   "_qx", "_qy", "_qz"};
constexpr std::array kVelocities = {"_vx", "_vy", "_vz", "_wx", "_wy", "_wz"};

// `of_free`: the parts of a free joint. Those of a ball joint are its last.
const char* PartOf(std::span<const char* const> of_free, int joint_type,
                   int part) {
  constexpr size_t kFirstOfBall = 3;
  const auto at = static_cast<size_t>(part);
  if (joint_type == mjJNT_FREE) return of_free[at];
  return joint_type == mjJNT_BALL ? of_free[kFirstOfBall + at] : "";
}

}  // namespace

std::string OwnName(const mjModel& model, int type, int index) {
  const char* const name = mj_id2name(&model, type, index);
  return name == nullptr ? "" : name;
}

std::string OwnNames(const mjModel& model, int type, mjtSize count) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names;
  for (int id = 0; id < count && names.size() < kMost; ++id) {
    std::string name = OwnName(model, type, id);
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names.empty() ? "none that has a name" : absl::StrJoin(names, ", ");
}

std::string BodyName(const mjModel& model, int body) {
  const std::string name = OwnName(model, mjOBJ_BODY, body);
  return name.empty() ? absl::StrCat("body ", body) : name;
}

std::string PositionName(const mjModel& model, int index) {
  int joint = 0;
  while (joint + 1 < model.njnt && model.jnt_qposadr[joint + 1] <= index) {
    ++joint;
  }
  return absl::StrCat(JointName(model, joint),
                      PartOf(kPositions, model.jnt_type[joint],
                             index - model.jnt_qposadr[joint]));
}

std::string VelocityName(const mjModel& model, int index) {
  const int joint = model.dof_jntid[index];
  return absl::StrCat(JointName(model, joint),
                      PartOf(kVelocities, model.jnt_type[joint],
                             index - model.jnt_dofadr[joint]));
}

std::string BodyAxisName(const mjModel& model, int index) {
  constexpr std::array kAxes = {"/x", "/y", "/z"};
  return absl::StrCat(BodyName(model, index / 3),
                      kAxes[static_cast<size_t>(index % 3)]);
}

std::vector<std::string> ActuatorNames(const mjModel& model) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (int i = 0; i < model.nu; ++i) {
    names.push_back(OwnName(model, mjOBJ_ACTUATOR, i));
    taken.insert(names.back());
  }
  for (int i = 0; i < model.nu; ++i) {
    std::string& name = names[static_cast<size_t>(i)];
    if (!name.empty()) continue;
    const int type = model.actuator_trntype[i];
    if (type == mjTRN_JOINT || type == mjTRN_JOINTINPARENT) {
      name = JointName(model, model.actuator_trnid[2 * i]);
    }
    if (name.empty() || !taken.insert(name).second) {
      name = absl::StrCat("actuator ", i);
      while (!taken.insert(name).second) name += "'";
    }
  }
  return names;
}

}  // namespace tandem
