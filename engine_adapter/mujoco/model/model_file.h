// Model files: finds them, and loads them as mjModel.
//
// Data flow: file name -> FindModelFile -> path -> LoadModel -> mjModel.
//
//   absl::StatusOr<ModelFile> file = FindModelFile("half_cheetah.xml", "");
//   absl::StatusOr<ModelPtr> model = LoadModel(*file);

#pragma once

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
  // Whether it is one of Gymnasium's files. LoadModel drops their warnings.
  bool is_asset = false;
  // Not empty: it is a compiled model (.mjb) of this version of MuJoCo.
  std::string compiled_by = {};
};

// Resolves Gymnasium's option xml_file. A text that starts with '.' or '~', or
// with '/' (on Windows also "C:" or '\') is a path, which is not checked. Other
// texts name a model file of Tandem's tasks. The first folder that has the file
// counts:
//   1. `assets_folder`; if it is not empty, no other folder is searched
//   2. assets/ beside this program, as in a wheel
//   3. the build tree's runfiles (RUNFILES_DIR, or beside this program)
// kInvalidArgument: no folder has the file (the text has the folders), or '~'
// names an unknown user.
absl::StatusOr<ModelFile> FindModelFile(const std::string& xml_file,
                                        const std::string& assets_folder);

// kInvalidArgument: the file is not readable. kUnsupported: it was compiled by
// another version of MuJoCo. kEngineFailed, with MuJoCo's error text: MuJoCo
// cannot load the file.
absl::StatusOr<ModelPtr> LoadModel(const ModelFile& file);

// Both return kEngineFailed if MuJoCo has no memory.
absl::StatusOr<ModelPtr> CopyModel(const mjModel& model);
absl::StatusOr<DataPtr> MakeData(const mjModel& model);

}  // namespace tandem
