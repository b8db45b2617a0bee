// Shared parts of the fuzz targets: an input reader and a check that aborts.
//
// Data flow: a fuzzer's input -> Script -> the target's next operation.
//
//   for (Script script(data, size); !script.AtEnd();) Act(script.Byte());
//   Require(writer.head() == twin.head, "head");

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace tandem {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
  std::abort();
}

// Takes bytes off the input; returns zeros after its end.
class Script {
 public:
  Script(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool AtEnd() const { return rest_.empty(); }
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  uint32_t Word() {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | Byte();
    return word;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace tandem
