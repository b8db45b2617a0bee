// UniqueRegionName: a region name that no other test on this machine has.
//
// Data flow: a prefix, the pid, the time -> a name. The pid alone would not do:
// test sandboxes with process ids of their own share one /dev/shm.
//
//   const std::string name = UniqueRegionName("lock-step");

#ifndef TANDEM_TESTS_END_TO_END_UNIQUE_REGION_NAME_H_
#define TANDEM_TESTS_END_TO_END_UNIQUE_REGION_NAME_H_

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "transport/base/clock.h"

namespace tandem {

inline std::string UniqueRegionName(absl::string_view prefix) {
  return absl::StrCat("tandem-", prefix, "-", getpid(), "-", MonotonicNanos());
}

}  // namespace tandem

#endif  // TANDEM_TESTS_END_TO_END_UNIQUE_REGION_NAME_H_
