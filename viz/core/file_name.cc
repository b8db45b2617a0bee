#include "viz/core/file_name.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/error.h"

namespace tandem {

std::string NewFileName(absl::string_view run, absl::string_view ending) {
  std::string name(run.substr(0, 100));
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (!absl::ascii_isalnum(byte) && letter != '-' && letter != '.') {
      letter = '_';
    }
  }
  return absl::StrCat(
      name, "-",
      absl::FormatTime("%Y%m%d-%H%M%E3S", absl::Now(), absl::LocalTimeZone()),
      ending);
}

absl::Status MakeFolder(absl::string_view flag, const std::string& folder) {
  if (folder == ".") return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool is_folder = std::filesystem::is_directory(folder, error);
  if (is_folder && access(folder.c_str(), W_OK | X_OK) == 0) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(flag, ": expected a folder that can be written or made, ",
                   "found ", is_folder ? "one that cannot" : "none",
                   "; next: another folder: ", folder));
}

}  // namespace tandem
