// AllowedUsers: whose connections the daemon takes: its own user's, and those
// of --allow_users.
//
// Data flow: names and numbers -> the system's users -> a set of uids.
// Ownership: a value; read-only once it is made.
//
//   const absl::StatusOr<AllowedUsers> users = AllowedUsers::Parse("alice");
//   if (!users.ok()) return users.status();
//   if (!users->Has(uid)) ...

#ifndef TANDEM_SLOW_LANE_DAEMON_ALLOWED_USERS_H_
#define TANDEM_SLOW_LANE_DAEMON_ALLOWED_USERS_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

class AllowedUsers {
 public:
  // `more`: names or uids between commas; empty: none. kInvalidArgument: a name
  // that the system does not know. kFailedPrecondition: the kernel shows this
  // process's own user as it shows users that it does not know. May block as
  // the system's user database does.
  static absl::StatusOr<AllowedUsers> Parse(absl::string_view more);

  // Root is a user as any other: programs of root forward connections of
  // others.
  bool Has(uid_t uid) const { return uids_.contains(uid); }

  bool HasOthers() const { return uids_.size() > 1; }

  // The daemon's own user, such as "alice (uid 1000)".
  const std::string& own() const { return own_; }

 private:
  explicit AllowedUsers(std::string own) : own_(std::move(own)) {}

  std::string own_;
  std::set<uid_t> uids_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_ALLOWED_USERS_H_
