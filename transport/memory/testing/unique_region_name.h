// UniqueRegionName: a region name that no other test on this machine has.
//
// Data flow: a prefix and 64 random bits -> a name. A pid is not unique: test
// sandboxes with separate process ids share one /dev/shm.
//
//   const std::string name = UniqueRegionName("lock-step");

#pragma once

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem {

inline std::string UniqueRegionName(absl::string_view prefix) {
  std::random_device entropy;
  return absl::StrCat("tandem-", prefix, "-", absl::Hex(entropy()),
                      absl::Hex(entropy(), absl::kZeroPad8));
}

}  // namespace tandem
