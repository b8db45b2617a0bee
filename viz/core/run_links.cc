#include "viz/core/run_links.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/os/unique_fd.h"
#include "base/printable.h"

namespace tandem {
namespace {

// The daemon accepts configurations of 4 MiB; Linux, variables of 6 MiB.
constexpr size_t kMaxBytes = size_t{8} << 20;

// Returns nullopt for a file that is missing, or not plain, or too large.
std::optional<std::string> ReadAll(const std::string& path) {
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode)) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 64 << 10> part;
  for (;;) {
    const ssize_t got = read(file.get(), part.data(), part.size());
    if (got == 0) return text;
    if (got < 0 || text.size() > kMaxBytes) return std::nullopt;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

}  // namespace

std::string RunOfProcess(pid_t pid) {
  const std::optional<std::string> variables =
      ReadAll(absl::StrCat("/proc/", pid, "/environ"));
  if (!variables.has_value()) return "";
  for (absl::string_view entry : absl::StrSplit(*variables, '\0')) {
    if (absl::ConsumePrefix(&entry, "TANDEM_RUN_ID=")) return Printable(entry);
  }
  return "";
}

bool WantsFrames(const std::string& folder) {
  const std::optional<std::string> text =
      ReadAll(absl::StrCat(folder, "/config.json"));
  if (!text.has_value()) return false;
  const nlohmann::json config =
      nlohmann::json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer place("/metadata/tandem/fast_lane");
  return config.is_object() && config.contains(place) &&
         config.at(place).is_object();
}

}  // namespace tandem
