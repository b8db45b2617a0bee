#include "slow_lane/runs/process_memory.h"

#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tandem::slow_lane {

uint64_t SumOfPss(std::span<const TreeMember> members) {
  uint64_t sum = 0;
  for (const TreeMember& member : members) {
    std::ifstream file(
        absl::StrCat("/proc/", member.identity.pid, "/smaps_rollup"));
    std::string line;
    while (std::getline(file, line)) {
      absl::string_view kib = line;  // "Pss:      1234 kB"
      if (!absl::ConsumePrefix(&kib, "Pss:")) continue;
      absl::ConsumeSuffix(&kib, "kB");
      uint64_t value = 0;
      if (absl::SimpleAtoi(kib, &value)) sum += value << 10;
      break;
    }
  }
  return sum;
}

}  // namespace tandem::slow_lane
