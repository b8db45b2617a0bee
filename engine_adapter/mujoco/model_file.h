// Model files: where they lie, and how they become an mjModel.
//
// Data flow: file name -> FindAsset -> path -> LoadModel -> mjModel.
//
//   absl::StatusOr<std::string> path = FindAsset("half_cheetah.xml", "");
//   absl::StatusOr<ModelPtr> model = LoadModel(*path);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_FILE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_FILE_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

struct ModelDeleter {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
};
using ModelPtr = std::unique_ptr<mjModel, ModelDeleter>;

struct DataDeleter {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

// The path of a model file that Tandem's tasks use. Looks, in this order, in
//   1. `assets_folder`, if it is not empty: then nowhere else
//   2. assets/ beside this program, where a wheel puts them
//   3. the build tree's runfiles (of RUNFILES_DIR, or beside this program)
// kInvalidArgument, naming every place it looked in.
absl::StatusOr<std::string> FindAsset(const std::string& file_name,
                                      const std::string& assets_folder);

// kInvalidArgument if nothing can be read there; kEngineFailed with MuJoCo's
// own words if it is no model.
absl::StatusOr<ModelPtr> LoadModel(const std::string& path);

// kEngineFailed if MuJoCo has no memory for it.
absl::StatusOr<DataPtr> MakeData(const mjModel& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_FILE_H_
