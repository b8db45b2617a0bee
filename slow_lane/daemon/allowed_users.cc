#include "slow_lane/daemon/allowed_users.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "slow_lane/daemon/peer_owner.h"
#include "transport/base/quoted.h"

namespace tandem::slow_lane {

absl::StatusOr<AllowedUsers> AllowedUsers::Parse(absl::string_view more) {
  const uid_t own = geteuid();
  if (!NamesOneUser(own)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a uid that the user namespace maps, found uid ", own,
        ", the overflow uid of all users that it does not map; next: "
        "start the daemon by unshare --map-current-user, or outside of the "
        "namespace"));
  }
  const passwd* const entry = getpwuid(own);
  AllowedUsers users(entry == nullptr
                         ? absl::StrCat("uid ", own)
                         : absl::StrCat(entry->pw_name, " (uid ", own, ")"));
  users.uids_.insert(own);
  if (more.empty()) return users;
  for (const absl::string_view name : absl::StrSplit(more, ',')) {
    uint32_t uid = 0;
    const bool is_number =
        name.find_first_not_of("0123456789") == absl::string_view::npos &&
        absl::SimpleAtoi(name, &uid);
    if (!is_number) {
      const passwd* const found = getpwnam(std::string(name).c_str());
      if (found == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--allow_users: expected names or uids of users between commas, "
            "found ",
            Quoted(name),
            ", which is no user of this machine; next: id -u "
            "prints a user's uid"));
      }
      uid = found->pw_uid;
    }
    // (uid_t)-1 means "none" in many calls.
    if (uid == std::numeric_limits<uid_t>::max() || !NamesOneUser(uid)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--allow_users: expected names or uids of users, found uid ", uid,
          ", by which the kernel names no single user here"));
    }
    users.uids_.insert(uid);
  }
  return users;
}

}  // namespace tandem::slow_lane
