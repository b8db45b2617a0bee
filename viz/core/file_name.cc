#include "viz/core/file_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

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

}  // namespace tandem
