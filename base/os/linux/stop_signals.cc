#include "base/os/stop_signals.h"

#include <string.h>

#include "absl/strings/str_cat.h"

namespace tandem {

std::string DescribeSignal(int number) {
  const char* const text = sigdescr_np(number);
  return text != nullptr ? text : absl::StrCat("signal ", number);
}

}  // namespace tandem
