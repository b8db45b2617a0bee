// ReadToken: the secret of a file that only its user can read, with which
// a client is accepted where the kernel states no owner of its connection.
//
// Data flow: --token_file or TANDEM_TOKEN_FILE -> the file's content -> the
// metadata `authorization: Bearer TOKEN` of each call.
//
//   const absl::StatusOr<std::string> token = ReadToken(path);
//   if (!token.ok()) return token.status();
//   context.AddMetadata(kTokenKey, BearerOf(*token));

#ifndef TANDEM_SLOW_LANE_WIRE_TOKEN_FILE_H_
#define TANDEM_SLOW_LANE_WIRE_TOKEN_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

inline constexpr char kTokenKey[] = "authorization";
inline constexpr char kTokenVariable[] = "TANDEM_TOKEN_FILE";

inline constexpr size_t kLeastTokenBytes = v1::MIN_TOKEN_BYTES;
inline constexpr size_t kMostTokenBytes = v1::MAX_TOKEN_BYTES;

inline std::string BearerOf(absl::string_view token) {
  return absl::StrCat("Bearer ", token);
}

// The file's content without the white space around it. kInvalidArgument: no
// token, as its length or a byte in it says. kPermissionDenied: the file is
// another user's, or open to others. Else the system's error.
absl::StatusOr<std::string> ReadToken(const std::string& path);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_WIRE_TOKEN_FILE_H_
