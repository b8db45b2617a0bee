// InspectOptions: the command line of the inspector.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

struct InspectOptions {
  enum class What : uint8_t { kHelp, kKeys, kList, kOne };
  What what = What::kOne;
  std::string name = {};  // with kOne
  bool watch = false;
  bool json = false;
  // Services to switch, by name. At most one of the vectors has a given name.
  std::vector<std::string> enable = {};
  std::vector<std::string> disable = {};
};

// As ProgramFlags::SetFromWords; also kInvalidArgument: no name, or more than
// one; unknown services, a service that is both enabled and disabled, services
// with `list` or --watch. Behind "--", "list" is a name.
absl::StatusOr<InspectOptions> ParseInspectOptions(
    std::span<const absl::string_view> words);

// How this program is called: tandem-inspect in the wheel, tools/inspect in a
// clone.
std::string InspectCommand();

std::string InspectHelp();

}  // namespace tandem
