#include "slow_lane/runs/run_token.h"

#include <sha2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "slow_lane/runs/durable_file.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::string_view kNul("\0", 1);

// Returns an environment with a NUL before and after each entry. Empty: the
// process has ended, has no environment, or belongs to another user. An error
// means that this process cannot read environments.
absl::StatusOr<std::string> ReadEnvironment(const std::string& path) {
  std::string environment(kNul);
  const int error = ReadFile(path, &environment);
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    return MakeSystemError("read", path, error);
  }
  if (error != 0) return std::string();
  // The process may have overwritten the last NUL.
  environment.append(kNul.data(), kNul.size());
  return environment;
}

// Returns 62 bits of the token's SHA-256.
rlim_t LimitOf(absl::string_view token) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const uint8_t*>(token.data()),
               token.size());
  SHA256Final(digest.data(), &context);
  rlim_t limit = 0;
  std::memcpy(&limit, digest.data(), sizeof(limit));
  return std::max<rlim_t>(limit >> 2, 1);
}

}  // namespace

std::string MakeToken() {
  std::array<char, 16> bytes;
  FillRandom(std::as_writable_bytes(std::span(bytes)));
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::optional<std::string> RunTokenOf(pid_t pid) {
  const std::string environment =
      ReadEnvironment(absl::StrCat("/proc/", pid, "/environ")).value_or("");
  const std::string beginning = absl::StrCat(kNul, kRunTokenVariable, "=");
  const size_t begin = environment.find(beginning);
  if (begin == environment.npos) return std::nullopt;
  // The entry ends at the NUL.
  return environment.c_str() + begin + beginning.size();
}

RunToken::RunToken(absl::string_view token)
    : entry_(token.empty()
                 ? std::string()
                 : absl::StrCat(kNul, kRunTokenVariable, "=", token, kNul)),
      limit_(LimitOf(token)) {}

absl::StatusOr<bool> RunToken::IsOf(const ProcessStat& stat) const {
  if (entry_.empty()) return false;
  rlimit limit = {};
  if (prlimit(stat.pid, RLIMIT_LOCKS, nullptr, &limit) == 0 &&
      limit.rlim_cur == limit_) {
    return true;
  }
  const auto is_in = [this](const std::string& path) -> absl::StatusOr<bool> {
    TANDEM_ASSIGN_OR_RETURN(const std::string environment,
                            ReadEnvironment(path));
    return absl::StrContains(environment, entry_);
  };
  const std::string process = absl::StrCat("/proc/", stat.pid);
  if (stat.state != 'Z') return is_in(process + "/environ");
  std::error_code gone;
  for (std::filesystem::directory_iterator thread(process + "/task", gone), end;
       !gone && thread != end; thread.increment(gone)) {
    const absl::StatusOr<bool> found =
        is_in(thread->path().string() + "/environ");
    if (!found.ok() || *found) return found;
  }
  if (gone == std::errc::too_many_files_open ||
      gone == std::errc::too_many_files_open_in_system) {
    return MakeSystemError("opendir", process, gone.value());
  }
  return false;
}

}  // namespace tandem::slow_lane
