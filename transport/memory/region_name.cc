#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/process_handle.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "schema/layout/scene.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr size_t kLongestName = 200;

bool IsNameChar(char c, bool first) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         (!first && (c == '.' || c == '-'));
}

// Returns `prefix` and the run id, which has at most `longest` bytes.
absl::StatusOr<std::string> SegmentName(absl::string_view prefix,
                                        absl::string_view run_id,
                                        size_t longest) {
  if (run_id.empty() || run_id.size() > longest ||
      run_id.find('\0') != absl::string_view::npos) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("run id: expected 1 to ", longest,
                     " bytes without NUL, found ", run_id.size(), " ('",
                     Printable(run_id.substr(0, longest)), "')"));
  }
  std::string name = absl::StrCat(prefix, run_id);
  std::ranges::replace(name, '/', '_');
  return name;
}

// Run ids may have characters that a region's name may not.
bool IsSegmentName(absl::string_view name, absl::string_view prefix) {
  constexpr size_t kLongestFileName = 255;
  return absl::StartsWith(name, prefix) && name.size() <= kLongestFileName &&
         name.find('/') == absl::string_view::npos &&
         name.find('\0') == absl::string_view::npos;
}

}  // namespace

std::string DefaultRegionName() {
  const std::string name = EnvironmentVariable("LUCKY_SHM_NAME");
  return name.empty() ? kDefaultRegionName : name;
}

absl::Status CheckRegionName(absl::string_view name) {
  std::string found;
  if (name.empty()) {
    found = "it is empty";
  } else if (name.size() > kLongestName) {
    found = absl::StrCat("it has ", name.size());
  }
  for (size_t i = 0; i < name.size() && found.empty(); ++i) {
    if (!IsNameChar(name[i], i == 0)) {
      size_t end = i + 1;  // after the last byte of the character
      while (end < name.size() && (name[end] & 0xC0) == 0x80) ++end;
      found = absl::StrCat("found '", Printable(name.substr(i, end - i)),
                           "' at position ", i);
    }
  }
  if (found.empty()) return absl::OkStatus();
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("region name: expected 1 to ", kLongestName,
                   " characters of A-Z a-z 0-9 _ . - that begin with a letter,"
                   " digit or _; ",
                   found, " (name '", Printable(name.substr(0, kLongestName)),
                   "')"));
}

absl::StatusOr<std::string> FrameSegmentName(absl::string_view run_id) {
  constexpr size_t kLongest = 184;  // kLongestName minus the prefix
  return SegmentName(kFlanSegmentPrefix, run_id, kLongest);
}

absl::StatusOr<std::string> SceneSegmentName(absl::string_view name) {
  return SegmentName(kSceneSegmentPrefix, name, kLongestName);
}

bool IsSharedName(absl::string_view name) {
  return IsSegmentName(name, kFlanSegmentPrefix) ||
         IsSegmentName(name, kSceneSegmentPrefix) || CheckRegionName(name).ok();
}

}  // namespace tandem
