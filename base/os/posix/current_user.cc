#include "base/os/current_user.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem {

bool IsCurrentUser(const Owner& owner) {
  return owner.user == absl::StrCat(geteuid());
}

bool IsTrusted(const Owner& owner) {
  if (IsCurrentUser(owner) || owner.user == "0") return true;
  if (!owner.group_access) return false;
  std::vector<gid_t> groups(static_cast<size_t>(getgroups(0, nullptr)));
  groups.resize(static_cast<size_t>(
      std::max(getgroups(static_cast<int>(groups.size()), groups.data()), 0)));
  groups.push_back(getegid());
  return std::ranges::any_of(
      groups, [&](gid_t group) { return owner.group == absl::StrCat(group); });
}

std::string DescribeUser(const Owner& owner) {
  passwd entry;
  passwd* found = nullptr;
  std::vector<char> text(4096);
  uid_t user = 0;
  if (absl::SimpleAtoi(owner.user, &user) &&
      getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 &&
      found != nullptr) {
    return absl::StrCat(found->pw_name, " (uid ", owner.user, ")");
  }
  return absl::StrCat("uid ", owner.user);
}

std::optional<std::string> HomeFolder(const std::string& user) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread asks
  const passwd* const entry =
      user.empty() ? getpwuid(getuid()) : getpwnam(user.c_str());
  // NOLINTEND(concurrency-mt-unsafe)
  if (entry == nullptr) return std::nullopt;
  return entry->pw_dir;
}

bool MayRead(const std::string& path) {
  return access(path.c_str(), R_OK) == 0;
}

bool MayRun(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

}  // namespace tandem
