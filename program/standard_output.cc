#include "program/standard_output.h"

#include <cerrno>
#include <cstdio>

#include "transport/base/error.h"

namespace tandem {

absl::Status Print(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  const absl::Status status =
      MakeSystemError("write", "standard output", error);
  return error == EPIPE ? MakeError(ErrorCode::kPeerGone, status.message())
                        : status;
}

}  // namespace tandem
