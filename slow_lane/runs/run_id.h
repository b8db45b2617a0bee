// Run ids: makes a ULID if the client gave none, checks given ids, and makes
// the error for an unknown run.
//
// Data flow: clock and random bytes -> MakeRunId -> a run's key in the table,
// and the name of its folder. The order of ids is that of the clock.

#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Returns a new ULID. Reads the clock and 80 random bits of the kernel.
std::string MakeRunId();

// Returns the ULID of a time and of random bits: 48 bits of `unix_millis`, most
// significant first, then 80 bits of `random`, five bits a character. Times
// beyond 48 bits lose their high bits.
std::string FormatUlid(uint64_t unix_millis,
                       const std::array<uint8_t, 10>& random);

// kInvalidArgument unless `run_id` is valid for a folder: 1 to 128 characters
// of A-Z, a-z, 0-9, '_', '.' and '-'; the first is neither '.' nor '-'.
absl::Status CheckRunId(absl::string_view run_id);

// Returns kNotFound, with a text for the caller.
absl::Status NoSuchRun(absl::string_view run_id);

}  // namespace tandem::slow_lane
