// The tasks. A file has one task or one family: ant.cc, planar_walkers.cc, ...
// docs/adding_tasks.md explains how to add a task.
//
//   for (const TaskType* type : kAllTasks) std::puts(type->name);

#pragma once

#include "engine_adapter/mujoco/model/task.h"

namespace tandem {

extern const TaskType kAnt;
extern const TaskType kHalfCheetah;
extern const TaskType kHopper;
extern const TaskType kHumanoid;
extern const TaskType kHumanoidStandup;
extern const TaskType kInvertedDoublePendulum;
extern const TaskType kInvertedPendulum;
extern const TaskType kPusher;
extern const TaskType kReacher;
extern const TaskType kSwimmer;
extern const TaskType kWalker2d;

// In alphabetical order.
inline constexpr const TaskType* kAllTasks[] = {
    &kAnt,
    &kHalfCheetah,
    &kHopper,
    &kHumanoid,
    &kHumanoidStandup,
    &kInvertedDoublePendulum,
    &kInvertedPendulum,
    &kPusher,
    &kReacher,
    &kSwimmer,
    &kWalker2d,
};

// Any model, unchanged. It has no asset file, so it is not in the table.
extern const TaskType kMjcfModel;

}  // namespace tandem
