#include "engine_adapter/mujoco/model/model_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/current_user.h"
#include "base/os/process_handle.h"
#include "base/os/utf8_path.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"

namespace tandem {
namespace {

// The folder of Gymnasium's model files in Bazel's runfiles.
constexpr char kInRunfiles[] = "pip/gymnasium_mujoco_assets";

std::vector<std::string> Folders(const std::string& assets_folder) {
  if (!assets_folder.empty()) return {assets_folder};
  std::vector<std::string> folders;
  const std::filesystem::path program = Utf8Path(ProgramPath());
  if (!program.empty())
    folders.push_back((program.parent_path() / "assets").string());
  const std::string runfiles = EnvironmentVariable("RUNFILES_DIR");
  if (!runfiles.empty()) {
    folders.push_back(absl::StrCat(runfiles, "/", kInRunfiles));
  }
  if (!program.empty()) {
    folders.push_back(
        absl::StrCat(program.string(), ".runfiles/", kInRunfiles));
  }
  return folders;
}

// Expands "~/x" and "~name/x" as a shell does.
absl::StatusOr<ModelFile> InHome(const std::string& xml_file) {
  constexpr char kSlashes[] = {
      '/', static_cast<char>(std::filesystem::path::preferred_separator), '\0'};
  const size_t slash =
      std::min(xml_file.find_first_of(kSlashes), xml_file.size());
  const std::string name = xml_file.substr(1, slash - 1);
  const std::string own = name.empty() ? EnvironmentVariable("HOME") : "";
  const std::optional<std::string> home =
      !own.empty() ? std::optional(own) : HomeFolder(name);
  if (home.has_value()) {
    return ModelFile{.path = absl::StrCat(*home, xml_file.substr(slash))};
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("xml_file: expected a path, found '", xml_file,
                                "', which is in the home of an unknown user; "
                                "write it out"));
}

// Returns the result of MuJoCo's allocating function `make`, or its error.
template <typename Pointer, typename Make>
absl::StatusOr<Pointer> Made(absl::string_view function, const Make& make) {
  std::string text = absl::StrCat(function, " failed");
  try {
    Pointer made(make());
    if (made != nullptr) return made;
  } catch (const MujocoError& error) {
    text = error.what();
  }
  return MakeError(ErrorCode::kEngineFailed,
                   absl::StrCat("expected room for one more environment, "
                                "found: ",
                                text, "; use fewer"));
}

}  // namespace

absl::StatusOr<ModelFile> FindModelFile(const std::string& xml_file,
                                        const std::string& assets_folder) {
  if (absl::StartsWith(xml_file, ".") || Utf8Path(xml_file).has_root_path()) {
    return ModelFile{.path = xml_file};
  }
  if (absl::StartsWith(xml_file, "~")) return InHome(xml_file);
  const std::vector<std::string> folders = Folders(assets_folder);
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/", xml_file);
    if (MayRead(path)) {
      return ModelFile{.path = std::move(path),
                       .is_asset = assets_folder.empty()};
    }
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("xml_file: expected the model file ", xml_file,
                   ", found none; begin the path of a file of your own with ./ "
                   "or /, or name another folder with --assets (looked in ",
                   absl::StrJoin(folders, ", "), ")"));
}

absl::StatusOr<ModelPtr> LoadModel(const ModelFile& file) {
  const std::string& path = file.path;
  if (!MayRead(path)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a readable model file, found: ",
                                  std::strerror(errno), " (", path, ")"));
  }
  std::error_code unknown;
  if (std::filesystem::is_directory(Utf8Path(path), unknown)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a model file, found a folder (",
                                  path, "); name a file in it"));
  }
  const bool is_compiled = !file.compiled_by.empty();
  if (is_compiled && file.compiled_by != mj_versionString()) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("expected a model of MuJoCo ", mj_versionString(),
                     ", found one of MuJoCo ", file.compiled_by));
  }
  std::optional<MutedMujocoWarnings> muted;
  if (file.is_asset) muted.emplace();
  std::array<char, 1024> text = {};
  try {
    ModelPtr model(is_compiled ? mj_loadModel(path.c_str(), nullptr)
                               : mj_loadXML(path.c_str(), nullptr, text.data(),
                                            text.size()));
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

absl::StatusOr<ModelPtr> CopyModel(const mjModel& model) {
  return Made<ModelPtr>("mj_copyModel",
                        [&] { return mj_copyModel(nullptr, &model); });
}

absl::StatusOr<DataPtr> MakeData(const mjModel& model) {
  return Made<DataPtr>("mj_makeData", [&] { return mj_makeData(&model); });
}

}  // namespace tandem
