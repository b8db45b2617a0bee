#include "engine_adapter/mujoco/model_file.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/mujoco/mujoco_log.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

// Where Bazel puts Gymnasium's model files.
constexpr char kInRunfiles[] = "pip/gymnasium_mujoco_assets";

std::vector<std::string> Folders(const std::string& assets_folder) {
  if (!assets_folder.empty()) return {assets_folder};
  std::vector<std::string> folders;
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path() / "assets");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  if (const char* runfiles = std::getenv("RUNFILES_DIR")) {
    folders.push_back(absl::StrCat(runfiles, "/", kInRunfiles));
  }
  if (!error) {
    folders.push_back(
        absl::StrCat(program.string(), ".runfiles/", kInRunfiles));
  }
  return folders;
}

}  // namespace

absl::StatusOr<std::string> FindAsset(const std::string& file_name,
                                      const std::string& assets_folder) {
  const std::vector<std::string> folders = Folders(assets_folder);
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/", file_name);
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("expected the model file ", file_name,
                   ", found none; name its folder with --assets (looked in ",
                   absl::StrJoin(folders, ", "), ")"));
}

absl::StatusOr<ModelPtr> LoadModel(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a readable model file, found: ",
                                  strerrordesc_np(errno), " (", path, ")"));
  }
  std::array<char, 1024> text = {};
  try {
    ModelPtr model(mj_loadXML(path.c_str(), nullptr, text.data(), text.size()));
    if (model != nullptr) return model;
  } catch (const MujocoError& error) {
    absl::string_view(error.what()).copy(text.data(), text.size() - 1);
  }
  return MakeError(
      ErrorCode::kEngineFailed,
      absl::StrCat("expected a model that MuJoCo ", mj_versionString(),
                   " can load, found: ",
                   absl::StripAsciiWhitespace(text.data()), " (", path, ")"));
}

absl::StatusOr<DataPtr> MakeData(const mjModel& model) {
  absl::string_view text = "mj_makeData failed";
  std::string said;
  try {
    DataPtr data(mj_makeData(&model));
    if (data != nullptr) return data;
  } catch (const MujocoError& error) {
    said = error.what();
    text = said;
  }
  return MakeError(ErrorCode::kEngineFailed,
                   absl::StrCat("expected room for one more environment, "
                                "found: ",
                                text, "; use fewer"));
}

}  // namespace tandem
