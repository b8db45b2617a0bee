#include "base/os/stop_signals.h"

#include <signal.h>

#include "absl/strings/str_cat.h"

namespace tandem {

std::string DescribeSignal(int number) {
  const char* const text =
      number > 0 && number < NSIG ? sys_siglist[number] : nullptr;
  return text != nullptr ? text : absl::StrCat("signal ", number);
}

}  // namespace tandem
