// Tests of regions, each with a name of its own.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/os/shared_region.h"

namespace tandem {

inline constexpr uint64_t kBytes = 4096;

inline SharedRegion MakeRegion() {
  return SharedRegion::Create(kBytes, /*group_access=*/false,
                              {"the test's region", "use less"})
      .value();
}

class RegionTest : public testing::Test {
 protected:
  const std::string name_ = absl::StrCat(
      "os_", getpid(), "_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
};

}  // namespace tandem
