// The user of this process: which other users' memory it trusts, its home.
//
// Data flow: identifiers that the system gives to memory -> a decision, or a
// text.
//
//   if (!IsTrusted(region.owner())) return NotMine(region.owner());

#pragma once

#include <optional>
#include <string>

namespace tandem {

// The owner of shared memory, by the system's identifiers as texts: on Linux
// "1001".
struct Owner {
  std::string user;
  std::string group;
  bool group_access = false;  // the group may read and write
};

bool IsCurrentUser(const Owner& owner);

// Whether it is this user, root, or a group of this user that has access.
bool IsTrusted(const Owner& owner);

// Returns "alice (uid 1001)", for error texts.
std::string DescribeUser(const Owner& owner);

// Returns the home folder of the user with that name, or of this user for "";
// nullopt: unknown. Not thread-safe.
std::optional<std::string> HomeFolder(const std::string& user);

// Whether this user may read, or run, the file; the reason is in errno.
bool MayRead(const std::string& path);
bool MayRun(const std::string& path);

}  // namespace tandem
