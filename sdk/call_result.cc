#include "sdk/call_result.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/os/fork_guard.h"
#include "sdk/version.h"
#include "transport/region.h"

namespace tandem {
namespace {

thread_local std::string last_error;

}  // namespace

tandem_code CodeAndText(const absl::Status& status) {
  last_error = std::string(status.message());
  return static_cast<tandem_code>(CodeOf(status));
}

absl::Status MissingArgument(absl::string_view name) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(name, ": expected a pointer, found NULL; pass one"));
}

absl::Status InvalidHandle(absl::string_view type) {
  return MakeError(
      ErrorCode::kClientClosed,
      absl::StrCat("expected an open ", type,
                   ", found a handle that was closed, or was never one; make "
                   "another"));
}

absl::Status CheckProcess(uint32_t born_in, absl::string_view type) {
  if (born_in == ForkCount()) return absl::OkStatus();
  return MakeError(ErrorCode::kForkedChild,
                   absl::StrCat("expected the process that made the ", type,
                                ", found a forked child; make another there"));
}

absl::Status CheckStruct(const void* given, uint32_t first_bytes,
                         size_t known_bytes, absl::string_view name) {
  if (given == nullptr) return MissingArgument(name);
  const auto* const bytes = static_cast<const uint8_t*>(given);
  uint32_t size;
  std::memcpy(&size, bytes, sizeof(size));
  // The size of a later version would have to grow a hundredfold to be refused.
  constexpr uint32_t kMost = 64 * 1024;
  if (size < first_bytes || size > kMost) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat(name, "->struct_size: expected ", known_bytes,
                                  " (sizeof the struct), found ", size,
                                  "; set it before the call"));
  }
  for (size_t i = known_bytes; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat(name, ": expected the fields of version ",
                     TANDEM_ABI_MAJOR, ".", TANDEM_ABI_MINOR,
                     ", found a later one at byte ", i,
                     "; use a later libtandem.so, or leave that field 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckSeconds(double secs) {
  if (!std::isnan(secs)) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   "timeout_secs: expected seconds, found NaN");
}

uint64_t CopyText(absl::string_view text, char* into, uint64_t size) {
  if (into != nullptr && size > 0) {
    const uint64_t bytes = std::min<uint64_t>(text.size(), size - 1);
    std::memcpy(into, text.data(), bytes);
    into[bytes] = '\0';
  }
  return text.size();
}

std::string RegionNameOr(const char* name) {
  return name == nullptr ? DefaultRegionName() : name;
}

}  // namespace tandem

extern "C" {

uint32_t tandem_abi_version(void) {
  return uint32_t{TANDEM_ABI_MAJOR} << 16 | TANDEM_ABI_MINOR;
}

const char* tandem_version(void) { return TANDEM_VERSION; }

const char* tandem_code_name(tandem_code code) {
  switch (static_cast<tandem::ErrorCode>(code)) {
#define TANDEM_NAME(number, name, absl_code, python_class, meaning) \
  case tandem::ErrorCode::name:                                     \
    return &#name[1];
    TANDEM_ERROR_TABLE(TANDEM_NAME)
#undef TANDEM_NAME
  }
  return "unknown";
}

uint64_t tandem_last_error(char* text, uint64_t size) {
  return tandem::CopyText(tandem::last_error, text, size);
}

void tandem_free(void* memory) { std::free(memory); }

}  // extern "C"
