#include "slow_lane/runs/relayed_files.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tandem::slow_lane {
namespace {

constexpr std::array<absl::string_view, 6> kEndings = {".json", ".log", ".mp4",
                                                       ".html", ".glb", ".png"};
constexpr std::array<absl::string_view, 3> kRecords = {
    "config.json", "launch.json", "proxy.log"};
constexpr size_t kMaxName = 100;

}  // namespace

bool IsRelayedFile(absl::string_view name) {
  return name.size() <= kMaxName && !absl::StartsWith(name, ".") &&
         std::ranges::all_of(name,
                             [](char c) {
                               return absl::ascii_isalnum(c) || c == '.' ||
                                      c == '_' || c == '-';
                             }) &&
         std::ranges::find(kRecords, name) == kRecords.end() &&
         std::ranges::any_of(kEndings, [name](absl::string_view ending) {
           return absl::EndsWith(name, ending);
         });
}

}  // namespace tandem::slow_lane
