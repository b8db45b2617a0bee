// Model files: finds them, and loads them as mjModel.
//
// Data flow: file name -> FindModelFile -> path -> LoadModel -> mjModel.
//
//   absl::StatusOr<ModelFile> file = FindModelFile("half_cheetah.xml", "");
//   absl::StatusOr<ModelPtr> model = LoadModel(*file);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_MODEL_FILE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_MODEL_FILE_H_

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

struct ModelFile {
  std::string path;
  // Whether it is one of Gymnasium's files, which are loaded without warnings.
  bool is_asset = false;
};

// What Gymnasium's option xml_file means: a path of the user's if it starts
// with '.', '/' or '~'; else the name of a model file that Tandem's tasks use,
// which is looked for, in this order, in
//   1. `assets_folder`, if it is not empty: then nowhere else
//   2. assets/ beside this program, where a wheel puts them
//   3. the build tree's runfiles (of RUNFILES_DIR, or beside this program)
// kInvalidArgument if a name is in none of them, naming each place, or if a '~'
// stands for no user's home. A path is not searched for.
absl::StatusOr<ModelFile> FindModelFile(const std::string& xml_file,
                                        const std::string& assets_folder);

// kInvalidArgument if the file cannot be read; kEngineFailed with MuJoCo's
// error text if it is not a model.
absl::StatusOr<ModelPtr> LoadModel(const ModelFile& file);

// Both return kEngineFailed if MuJoCo has no memory.
absl::StatusOr<ModelPtr> CopyModel(const mjModel& model);
absl::StatusOr<DataPtr> MakeData(const mjModel& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_MODEL_FILE_H_
