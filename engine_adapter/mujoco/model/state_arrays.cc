#include "engine_adapter/mujoco/model/state_arrays.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

struct StateArray {
  const char* name;
  const mjtNum* (*values)(const mjData& data);
  int64_t (*length)(const mjModel& model);
};

template <auto kArray>
const mjtNum* Values(const mjData& data) {
  return data.*kArray;
}

// The number of joints, bodies and so on, times the values of each.
template <auto kCount, int kEach = 1>
int64_t Length(const mjModel& model) {
  return static_cast<int64_t>(model.*kCount) * kEach;
}

constexpr StateArray kArrays[] = {
    {"qpos", Values<&mjData::qpos>, Length<&mjModel::nq>},
    {"qvel", Values<&mjData::qvel>, Length<&mjModel::nv>},
    {"qacc", Values<&mjData::qacc>, Length<&mjModel::nv>},
    {"act", Values<&mjData::act>, Length<&mjModel::na>},
    {"ctrl", Values<&mjData::ctrl>, Length<&mjModel::nu>},
    {"sensordata", Values<&mjData::sensordata>, Length<&mjModel::nsensordata>},
    {"xpos", Values<&mjData::xpos>, Length<&mjModel::nbody, 3>},
    {"xquat", Values<&mjData::xquat>, Length<&mjModel::nbody, 4>},
    {"xipos", Values<&mjData::xipos>, Length<&mjModel::nbody, 3>},
    {"subtree_com", Values<&mjData::subtree_com>, Length<&mjModel::nbody, 3>},
    {"cinert", Values<&mjData::cinert>, Length<&mjModel::nbody, 10>},
    {"cvel", Values<&mjData::cvel>, Length<&mjModel::nbody, 6>},
    {"cfrc_ext", Values<&mjData::cfrc_ext>, Length<&mjModel::nbody, 6>},
    {"geom_xpos", Values<&mjData::geom_xpos>, Length<&mjModel::ngeom, 3>},
    {"site_xpos", Values<&mjData::site_xpos>, Length<&mjModel::nsite, 3>},
    {"actuator_force", Values<&mjData::actuator_force>, Length<&mjModel::nout>},
    {"qfrc_actuator", Values<&mjData::qfrc_actuator>, Length<&mjModel::nv>},
    {"qfrc_constraint", Values<&mjData::qfrc_constraint>, Length<&mjModel::nv>},
};

}  // namespace

StateArrays::StateArrays(TaskSetup& setup) {
  std::vector<std::string> known;
  for (const StateArray& array : kArrays) known.emplace_back(array.name);
  for (const std::string& name : setup.options().Names("state", known)) {
    const StateArray& array =
        *std::ranges::find(kArrays, name, &StateArray::name);
    const int64_t length = array.length(setup.model());
    setup.NeedAtLeast(1, length, absl::StrCat("values of ", name, " (state)"));
    chosen_.push_back({.name = array.name,
                       .values = array.values,
                       .length = static_cast<size_t>(length)});
  }
}

void StateArrays::Put(const mjData& data, InfoWriter& infos) const {
  for (const Chosen& array : chosen_) {
    infos.Put(array.name, std::span(array.values(data), array.length));
  }
}

}  // namespace tandem
