// ReadToken: reads the access token, a secret in a file that only its user can
// read. It admits a client for whose connection the kernel reports no owner.
//
// Data flow: --token_file or TANDEM_TOKEN_FILE -> the file's content -> the
// metadata `authorization: Bearer TOKEN` of each call.

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem {

inline constexpr char kTokenKey[] = "authorization";
inline constexpr char kTokenVariable[] = "TANDEM_TOKEN_FILE";

inline constexpr size_t kLeastTokenBytes = slow_lane::v1::MIN_TOKEN_BYTES;
inline constexpr size_t kMostTokenBytes = slow_lane::v1::MAX_TOKEN_BYTES;

inline std::string BearerOf(absl::string_view token) {
  return absl::StrCat("Bearer ", token);
}

// Returns the file's content without surrounding white space. kInvalidArgument:
// the length or a byte is invalid for a token. kPermissionDenied: another user
// owns the file, or others have access. Otherwise the system's error.
absl::StatusOr<std::string> ReadToken(const std::string& path);

}  // namespace tandem
