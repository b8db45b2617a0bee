#include "slow_lane/runs/run_id.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/machine.h"
#include "base/quoted.h"

namespace tandem::slow_lane {
namespace {

constexpr size_t kLongestRunId = 128;
// Crockford's base 32: no I, L, O and U.
constexpr char kDigits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr size_t kUlidLength = 26;

}  // namespace

std::string MakeRunId() {
  std::array<uint8_t, 10> random = {};
  FillRandom(std::as_writable_bytes(std::span(random)));
  return FormatUlid(UnixMillis(), random);
}

std::string FormatUlid(uint64_t unix_millis,
                       const std::array<uint8_t, 10>& random) {
  unsigned __int128 bits = unix_millis & ((uint64_t{1} << 48) - 1);
  for (const uint8_t byte : random) bits = bits << 8 | byte;
  std::string text;
  for (size_t i = kUlidLength; i > 0; --i) {
    text.push_back(kDigits[static_cast<size_t>(bits >> (5 * (i - 1))) & 31]);
  }
  return text;
}

absl::Status CheckRunId(absl::string_view run_id) {
  const auto may_be_in_it = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '.' || c == '-';
  };
  if (!run_id.empty() && run_id.size() <= kLongestRunId && run_id[0] != '.' &&
      run_id[0] != '-' && std::ranges::all_of(run_id, may_be_in_it)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "run_id: expected 1 to ", kLongestRunId,
      " of A-Z, a-z, 0-9, '_', '.', '-', the first neither '.' nor '-', found ",
      Quoted(run_id), "; next: leave it empty, and the daemon makes one"));
}

absl::Status NoSuchRun(absl::string_view run_id) {
  return absl::NotFoundError(absl::StrCat(
      "expected a run that was submitted, found none with the run_id ",
      Quoted(run_id), "; tandemctl list, or ListRuns, shows those that are"));
}

}  // namespace tandem::slow_lane
