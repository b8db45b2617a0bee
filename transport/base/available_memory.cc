#include "transport/base/available_memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace tandem {

uint64_t AvailableMemoryBytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  uint64_t kibibytes = 0;
  for (std::string unit; meminfo >> key >> kibibytes;
       std::getline(meminfo, unit)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::numeric_limits<uint64_t>::max();
}

}  // namespace tandem
